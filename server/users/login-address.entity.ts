import { defineEntity } from '@mikro-orm/core'
import { moment, text } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { User } from './user.entity.ts'

/** An address from which an account has logged in. */
export const LoginAddress = defineEntity({
  name: 'LoginAddress',
  tableName: 'login_addresses',
  properties: {
    user: () => refersTo(User).primary(),
    /** A keyed hash of account and address, hex: the address itself is not kept. */
    address_hash: text().primary(),
    /** The last log-in. */
    used_at: moment(),
  },
})
