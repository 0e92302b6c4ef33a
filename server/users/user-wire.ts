import type { UserWire } from '../../shared/schemas/users.ts'
import { isoTime } from '../platform/clock.ts'
import type { OwnDestinations } from './payout-destination.rule.ts'
import type { SessionRow, UserRow } from './users.store.ts'

/** An account without its balance and payout destination. */
export function wireUser(account: UserRow): UserWire {
  return {
    id: account.id,
    email: account.email,
    role: account.role,
    display_name: account.display_name,
    suspended: account.suspended_at !== null,
    created_at: isoTime(account.created_at),
    email_verified_at: account.email_verified_at === null ? null : isoTime(account.email_verified_at),
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
export function wireSession(session: SessionRow) {
  return {
    id: session.id,
    created_at: isoTime(session.created_at),
    expires_at: isoTime(session.expires_at),
    last_used_at: session.last_used_at === null ? null : isoTime(session.last_used_at),
    address_prefix: session.address_prefix,
    agent: session.agent,
  }
}
