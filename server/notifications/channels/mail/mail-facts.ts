import type { EventMailFacts } from './event-mails.ts'

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

export type MailFacts = AccountMailFacts & EventMailFacts
export type MailKind = keyof MailFacts

/** A mail's kind with its facts. */
export type MailContent = { [Kind in MailKind]: { kind: Kind; facts: MailFacts[Kind] } }[MailKind]
