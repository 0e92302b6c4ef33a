import type { UserWire } from '../../shared/schemas/users.ts'
import { isoTime } from '../platform/clock.ts'
import type { OwnDestinations } from './payout-destination.rule.ts'
import type { SessionRecord } from './sessions.service.ts'
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
    email_verified_at: account.emailVerifiedAt === null ? null : isoTime(account.emailVerifiedAt),
  }
}

/** The payout destinations of a creator, as part of their account. */
export function wireDestinations({ current, upcoming }: OwnDestinations) {
  return {
    payout_destination: current && {
      iban_last4: current.ibanLast4,
      account_title: current.accountTitle,
    },
    upcoming_payout_destination: upcoming && {
      iban_last4: upcoming.ibanLast4,
      account_title: upcoming.accountTitle,
      effective_at: isoTime(upcoming.effectiveAt),
    },
  }
}

/** An open session of an account. */
export function wireSession(session: SessionRecord) {
  return {
    id: session.id,
    created_at: isoTime(session.createdAt),
    expires_at: isoTime(session.expiresAt),
    last_used_at: session.lastUsedAt === null ? null : isoTime(session.lastUsedAt),
    address_prefix: session.addressPrefix,
    agent: session.agent,
  }
}
