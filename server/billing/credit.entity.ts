import { defineEntity } from '@mikro-orm/core'
import { id, moment, paisa, text } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { User } from '../users/user.entity.ts'

/** A refund to a merchant: lowers the amount due of later cycles. Granted by an operator, never changed. */
export const Credit = defineEntity({
  name: 'Credit',
  tableName: 'credits',
  properties: {
    id: id().primary(),
    merchant: () => refersTo(User),
    amount: paisa(),
    reference: text().unique(),
    reason: text(),
    created_at: moment(),
  },
  checks: [{ name: 'credits_amount_check', expression: 'amount > 0' }],
  indexes: [{ name: 'credits_merchant', properties: ['merchant'] }],
})
