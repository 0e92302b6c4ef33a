import type { UserWire } from '../../shared/schemas/users.ts'
import { isoTime } from '../platform/clock.ts'
import type { UserRecord } from './users.service.ts'

/** An account without its balance and payout destination. */
export function wireUser(account: UserRecord): UserWire {
  return {
    id: account.id,
    email: account.email,
    role: account.role,
    display_name: account.displayName,
    suspended: account.suspendedAt !== null,
    created_at: isoTime(account.createdAt),
  }
}
