import type { MailEvent } from '../../../../shared/events.ts'
import type { Store } from '../../../../shared/schemas/stores.ts'

/** What became of a second factor; `reset` is an operator's. */
export type SecondFactorChange = 'on' | 'off' | 'reset' | 'code_used' | 'codes_renewed'

/** What each kind of mail says, as stored. Times are epoch ms, amounts are text such as `1250.00`. */
export interface AccountMailFacts {
  verify_email: Record<string, never>
  password_reset: Record<string, never>
  password_changed: { at: number; by: 'owner' | 'reset' | 'operator' }
  payout_destination_changed: { at: number; iban_last4: string; effective_at: number }
  billing_account_changed: { at: number; last4: string }
  /** `network`: the prefix of the client's address. `program`: browser or app and system in words of ours. */
  new_login: { at: number; network: string; program: string | null }
  second_factor_changed: { at: number; change: SecondFactorChange }
  account_suspended: { at: number }
  webhook_endpoint_disabled: { at: number; url: string; reason: string }
}

export interface EventMailFacts extends Record<MailEvent, object> {
  'application.created': { offer: string; creator: string }
  /** `reason`: what the merchant wrote. */
  'application.decided': {
    offer: string
    decision: 'approved' | 'rejected'
    link: string | null
    reason: string | null
  }
  /** An account's first accepted sale. */
  'sale.accepted': { commission: string; net_amount: string; order_name: string | null }
  'billing_cycle.closed': {
    amount_due: string
    period_start: number
    period_end: number
    payment_url: string | null
  }
  'billing_cycle.overdue': { amount_due: string; closed_at: number; payment_url: string | null }
  'store.silent': { shop_domain: string; last_event_at: number | null }
  'store.rejecting': { shop_domain: string; at: number; reason: NonNullable<Store['last_refusal']>['reason'] }
  'payout.paid': { amount: string }
  'payout.failed': { amount: string; reason: string | null }
}

export type MailFacts = AccountMailFacts & EventMailFacts
export type MailKind = keyof MailFacts

/** A mail's kind with its facts. */
export type MailContent = { [Kind in MailKind]: { kind: Kind; facts: MailFacts[Kind] } }[MailKind]
