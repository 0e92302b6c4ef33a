import type { Paisa } from '../../shared/money.ts'
import { addition, rupees, sum } from './rupees.ts'

/** What the orders of the story have to come to, by the fixtures' manifest. Amounts in paisa, in the order of sending. */
export interface Expected {
  /** Commissions of the accepted orders, those of the charged cycle first. */
  charged: { commission: Paisa; fee: Paisa }[]
  /** Accepted after that cycle was closed. */
  open: { commission: Paisa; fee: Paisa }[]
  rejected: number
  /** Payouts are whole multiples of this; the rest stays released. */
  payoutUnit: Paisa
}

/** The closing figures as the service tells them; amounts in paisa. */
export interface ClosingFigures {
  merchant: { accepted: number; rejected: number; unbilled: Paisa; billed: Paisa; paid: Paisa }
  creator: { pending: Paisa; released: Paisa; inTransit: Paisa; paid: Paisa }
  platform: { fees: Paisa; credits: Paisa; clearing: Paisa }
}

/** What the closing figures must be, by addition alone. */
export function expectedFigures({ charged, open, rejected, payoutUnit }: Expected): ClosingFigures {
  const commission = sum(charged.map((sale) => sale.commission))
  const released = commission % payoutUnit
  const fee = sum(charged.map((sale) => sale.fee))
  const openCommission = sum(open.map((sale) => sale.commission))
  const openFee = sum(open.map((sale) => sale.fee))
  return {
    merchant: {
      accepted: charged.length + open.length,
      rejected,
      unbilled: openCommission + openFee,
      billed: commission + fee,
      paid: commission + fee,
    },
    creator: { pending: openCommission, released, inTransit: 0, paid: commission - released },
    platform: { fees: fee + openFee, credits: 0, clearing: fee + released },
  }
}

/** The figures that were found, each with the addition that it comes from, for doing the sums by hand. */
export function statementRows(
  expected: Expected,
  found: ClosingFigures,
  names: { merchant: string; creator: string },
): string[][] {
  const sales = [...expected.charged, ...expected.open]
  const commissions = sales.map((sale) => sale.commission)
  const fees = sales.map((sale) => sale.fee)
  const { merchant, creator, platform } = found
  const earned = sum(commissions)
  const owed = earned + sum(fees)
  const less = (total: Paisa, ...parts: Paisa[]) => `= ${[total, ...parts].map(rupees).join(' − ')}`
  return [
    [names.merchant, 'merchant', '', `${merchant.accepted} sales accepted, ${merchant.rejected} rejected`],
    ['', 'commission', rupees(earned), addition(commissions)],
    ['', 'platform fee', rupees(sum(fees)), addition(fees)],
    ['', 'billed', rupees(merchant.billed), addition(expected.charged.flatMap((s) => [s.commission, s.fee]))],
    ['', 'paid', rupees(merchant.paid), 'all that was billed'],
    ['', 'unbilled', rupees(merchant.unbilled), less(owed, merchant.billed)],
    [names.creator, 'creator', '', `earned ${rupees(earned)}`],
    ['', 'paid', rupees(creator.paid), ...paidFrom(expected)],
    ['', 'in transit', rupees(creator.inTransit)],
    ['', 'released', rupees(creator.released), ...restOf(expected)],
    ['', 'pending', rupees(creator.pending), less(earned, creator.paid, creator.inTransit, creator.released)],
    ['The platform', 'fees', rupees(platform.fees), addition(fees)],
    ['', 'credits', rupees(platform.credits), 'none granted'],
    ['', 'clearing', rupees(platform.clearing), less(merchant.paid, creator.paid)],
    [
      'Both sides',
      'unbilled + clearing',
      rupees(merchant.unbilled + platform.clearing),
      addition([merchant.unbilled, platform.clearing]),
    ],
    [
      '',
      creator.released > 0 ? 'pending + released + fees' : 'pending + fees',
      rupees(creator.pending + creator.released + creator.inTransit + platform.fees - platform.credits),
      addition([creator.pending, ...(creator.released > 0 ? [creator.released] : []), platform.fees]),
    ],
  ]
}

function paidFrom(expected: Expected): string[] {
  const commissions = expected.charged.map((sale) => sale.commission)
  const rest = sum(commissions) % expected.payoutUnit
  return [addition(commissions) + (rest > 0 ? ` − ${rupees(rest)}` : '')]
}

function restOf({ charged, payoutUnit }: Expected): string[] {
  const isWhole = sum(charged.map((sale) => sale.commission)) % payoutUnit === 0
  return isWhole ? [] : [`payouts are multiples of ${rupees(payoutUnit)}`]
}
