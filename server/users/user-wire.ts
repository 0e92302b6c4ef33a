import type { UserWire } from '../../shared/schemas/users.ts'
import { isoTime } from '../platform/clock.ts'
import type { ApiKeyRow, SessionRow, UserRow } from './users.store.ts'

/** An account without its balance and payout destination. */
export function wireUser(account: UserRow): UserWire {
  return {
    id: account.id,
    email: account.email,
    role: account.role,
    display_name: account.display_name,
    suspended: account.suspended_at !== null,
    created_at: isoTime(account.created_at),
    email_verified_at: isoTime(account.email_verified_at),
  }
}

/** An open session of an account. */
export function wireSession(session: SessionRow) {
  return {
    id: session.id,
    created_at: isoTime(session.created_at),
    expires_at: isoTime(session.expires_at),
    last_used_at: isoTime(session.last_used_at),
    address_prefix: session.address_prefix,
    agent: session.agent,
  }
}

/** An API key of an account, without the key itself. */
export function wireApiKey({ id, name, scope, last4, created_at, last_used_at, expires_at }: ApiKeyRow) {
  return {
    id,
    name,
    scope,
    last4,
    created_at: isoTime(created_at),
    last_used_at: isoTime(last_used_at),
    expires_at: isoTime(expires_at),
  }
}
