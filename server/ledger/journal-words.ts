// Separate from the tables, so that a command that needs a word does not load the ORM.

export const ENTRY_KINDS = [
  'sale_accepted',
  'credit_granted',
  'cycle_closed',
  'cycle_charged',
  'payout_created',
  'payout_confirmed',
  'payout_failed',
] as const
export type EntryKind = (typeof ENTRY_KINDS)[number]

export const ACCOUNTS = [
  'merchant_unbilled',
  'merchant_receivable',
  'creator_pending',
  'creator_released',
  'payouts_in_transit',
  'platform_fees',
  'platform_credits',
  'processor_clearing',
] as const
export type Account = (typeof ACCOUNTS)[number]
