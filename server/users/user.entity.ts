import { defineEntity } from '@mikro-orm/core'
import { id, moment, oneOf, text, word } from '../platform/columns.ts'

export const ROLES = ['merchant', 'creator', 'admin'] as const
export type Role = (typeof ROLES)[number]

export const User = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    id: id().primary(),
    /** Trimmed and lower case. */
    email: text().unique(),
    password_hash: text(),
    role: word<Role>(),
    display_name: text(),
    suspended_at: moment().nullable(),
    created_at: moment(),
  },
  checks: [oneOf('users', 'role', ROLES)],
  indexes: [{ name: 'users_suspended', properties: ['id'], where: 'suspended_at is not null' }],
})
