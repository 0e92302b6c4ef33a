import { defineEntity } from '@mikro-orm/core'
import { id, moment, text } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { User } from './user.entity.ts'

export const Session = defineEntity({
  name: 'Session',
  tableName: 'sessions',
  properties: {
    id: id().primary(),
    user: () => refersTo(User),
    /** SHA-256 of the token, hex: the token itself is shown once and never kept. */
    token_hash: text().unique(),
    created_at: moment(),
    expires_at: moment(),
  },
  indexes: [{ name: 'sessions_user', properties: ['user'] }],
})
