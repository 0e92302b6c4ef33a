import { defineEntity } from '@mikro-orm/core'
import { id, moment, text } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { User } from './user.entity.ts'

/** Where a creator is paid. Rows are only added; the latest one whose `effective_at` has come is in force. */
export const PayoutDestination = defineEntity({
  name: 'PayoutDestination',
  tableName: 'payout_destinations',
  properties: {
    id: id().primary(),
    user: () => refersTo(User),
    iban_encrypted: text(),
    /** Keyed hash, so that two users who share an IBAN can be found without decrypting any. */
    iban_fingerprint: text().index(),
    iban_last4: text(),
    account_title: text(),
    effective_at: moment(),
    created_at: moment(),
  },
  indexes: [{ name: 'payout_destinations_user', properties: ['user', 'effective_at'] }],
})
