import { assertPaisa, type Paisa } from '../../shared/money.ts'

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

/** One leg: debit above zero, credit below, in paisa. */
export interface Posting {
  account: Account
  /** The merchant or creator whose account it is, or `PLATFORM`. */
  owner: string
  amount: Paisa
}

export interface Entry {
  kind: EntryKind
  /** The sale, credit, billing cycle or payout that it is about; one entry a kind and subject. */
  subjectId: string
  /** The merchant or creator whose ledger it stands in. */
  ledgerId: string
  postings: Posting[]
}

/** Stands for the platform itself as the owner of an account. */
export const PLATFORM = '00000000-0000-0000-0000-000000000000'

const debit = (account: Account, owner: string, amount: Paisa): Posting => ({ account, owner, amount })
const credit = (account: Account, owner: string, amount: Paisa): Posting => ({
  account,
  owner,
  amount: -amount,
})

export function saleAccepted(sale: {
  saleId: string
  merchantId: string
  creatorId: string
  commission: Paisa
  platformFee: Paisa
}): Entry {
  return entry('sale_accepted', sale.saleId, sale.merchantId, [
    debit('merchant_unbilled', sale.merchantId, sale.commission + sale.platformFee),
    credit('creator_pending', sale.creatorId, sale.commission),
    credit('platform_fees', PLATFORM, sale.platformFee),
  ])
}

export function creditGranted(grant: { creditId: string; merchantId: string; amount: Paisa }): Entry {
  return entry('credit_granted', grant.creditId, grant.merchantId, [
    debit('platform_credits', PLATFORM, grant.amount),
    credit('merchant_unbilled', grant.merchantId, grant.amount),
  ])
}

export function cycleClosed(cycle: { cycleId: string; merchantId: string; amountDue: Paisa }): Entry {
  return entry('cycle_closed', cycle.cycleId, cycle.merchantId, [
    debit('merchant_receivable', cycle.merchantId, cycle.amountDue),
    credit('merchant_unbilled', cycle.merchantId, cycle.amountDue),
  ])
}

export function cycleCharged(cycle: {
  cycleId: string
  merchantId: string
  amountDue: Paisa
  shares: { creatorId: string; commission: Paisa }[]
}): Entry {
  return entry('cycle_charged', cycle.cycleId, cycle.merchantId, [
    debit('processor_clearing', PLATFORM, cycle.amountDue),
    credit('merchant_receivable', cycle.merchantId, cycle.amountDue),
    ...cycle.shares.flatMap((share) => [
      debit('creator_pending', share.creatorId, share.commission),
      credit('creator_released', share.creatorId, share.commission),
    ]),
  ])
}

interface PayoutFigures {
  payoutId: string
  creatorId: string
  amount: Paisa
}

export function payoutCreated(payout: PayoutFigures): Entry {
  return entry('payout_created', payout.payoutId, payout.creatorId, [
    debit('creator_released', payout.creatorId, payout.amount),
    credit('payouts_in_transit', payout.creatorId, payout.amount),
  ])
}

export function payoutConfirmed(payout: PayoutFigures): Entry {
  return entry('payout_confirmed', payout.payoutId, payout.creatorId, [
    debit('payouts_in_transit', payout.creatorId, payout.amount),
    credit('processor_clearing', PLATFORM, payout.amount),
  ])
}

export function payoutFailed(payout: PayoutFigures): Entry {
  return entry('payout_failed', payout.payoutId, payout.creatorId, [
    debit('payouts_in_transit', payout.creatorId, payout.amount),
    credit('creator_released', payout.creatorId, payout.amount),
  ])
}

/** Legs of nothing are left out; an entry that does not balance is a bug and never reaches the journal. */
function entry(kind: EntryKind, subjectId: string, ledgerId: string, legs: Posting[]): Entry {
  const postings = legs.filter((leg) => leg.amount !== 0)
  for (const posting of postings) assertPaisa(posting.amount)
  const sum = postings.reduce((total, posting) => total + posting.amount, 0)
  if (sum !== 0 || postings.length < 2) throw new Error(`${kind} of ${subjectId} does not balance: ${sum}`)
  return { kind, subjectId, ledgerId, postings }
}
