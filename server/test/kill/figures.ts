import { formatMoney, type Paisa } from '../../../shared/money.ts'
import type { Database } from '../../platform/database/database.ts'
import { rowsOf } from '../testkit/rows.ts'
import type { HeldOutside } from './outside-processor.ts'

/** What has to come out of one round, as a reader of the books sees it. */
export interface Figures {
  /** `price verdict commission fee`, by price. */
  sales: string[]
  /** `state count commission fee due`, oldest first. */
  cycles: string[]
  /** `creator state amount`, sorted. */
  payouts: string[]
  /** Every account of the round's people that does not stand at zero. */
  accounts: string[]
  /** How many of the store's deliveries ended in which state. */
  deliveries: Record<string, number>
  /** What the processor holds for this round: `amount status`, sorted. */
  invoicesThere: string[]
  payoutsThere: string[]
}

/**
 * By hand, from the orders of the round: 12.5 % of 1,000.00 and of 333.33, 10 % of 2,499.99 and of 59.95, each half up to
 * the paisa, the fee a tenth of that; 500.00 has no link. 422.67 + 42.27 = 464.94. The late order of
 * 800.00 makes a cycle of its own. Everything is paid at the end, so no account of theirs holds anything.
 */
const EXPECTED: Figures = {
  sales: [
    '59.95 accepted 6.00 0.60',
    '333.33 accepted 41.67 4.17',
    '500.00 rejected 0.00 0.00',
    '800.00 accepted 100.00 10.00',
    '1000.00 accepted 125.00 12.50',
    '2499.99 accepted 250.00 25.00',
  ],
  cycles: ['charged 4 422.67 42.27 464.94', 'charged 1 100.00 10.00 110.00'],
  payouts: ['ayesha paid 100.00', 'ayesha paid 166.67', 'bilal paid 256.00'],
  accounts: [],
  // One order came again under the same delivery id and one under another.
  deliveries: { done: 6, ignored: 1 },
  invoicesThere: ['110.00 paid', '464.94 paid'],
  payoutsThere: ['100.00 paid', '166.67 paid', '256.00 paid'],
}

/** The same with payouts of whole rupees: 0.67 of the first one stays for the second, and of that one again. */
const IN_WHOLE_RUPEES: Figures = {
  ...EXPECTED,
  payouts: ['ayesha paid 100.00', 'ayesha paid 166.00', 'bilal paid 256.00'],
  accounts: ['creator_released of ayesha: -0.67'],
  payoutsThere: ['100.00 paid', '166.00 paid', '256.00 paid'],
}

/** What has to come out of one round. `payoutUnit`: paisa. */
export function expectedFigures(payoutUnit: number): Figures {
  return payoutUnit === 100 ? IN_WHOLE_RUPEES : EXPECTED
}

/** What one round earns the platform, by hand: 42.27 + 10.00. */
export const EARNED_A_ROUND: Paisa = 5227

export interface Cast {
  merchantId: string
  storeId: string
  creators: Record<string, string>
}

export async function readFigures(
  database: Database,
  processor: { invoices: HeldOutside[]; payouts: HeldOutside[] },
  cast: Cast,
): Promise<Figures> {
  const { reader: db } = database
  const of = { merchant: cast.merchantId, creators: Object.values(cast.creators) }
  const sales = await rowsOf({ database }, 'sales', { merchant_id: of.merchant }, 'net_amount')
  const cycles = await rowsOf({ database }, 'billing_cycles', { merchant_id: of.merchant }, 'period_start')
  const payouts = await db.selectFrom('payouts').selectAll().where('creator_id', 'in', of.creators).execute()
  const nameOf = (id: string) => Object.keys(cast.creators).find((name) => cast.creators[name] === id)
  const there = (items: HeldOutside[], references: { id: string }[]) =>
    items
      .filter((item) => references.some(({ id }) => id === item.reference))
      .map((item) => `${item.amount} ${item.status}`)
      .sort()
  return {
    sales: sales.map(
      (sale) =>
        `${formatMoney(sale.net_amount)} ${sale.acceptance_status} ${formatMoney(sale.commission)} ${formatMoney(sale.platform_fee)}`,
    ),
    cycles: cycles.map(
      (cycle) =>
        `${cycle.state} ${cycle.sales_count} ${formatMoney(cycle.commission_total)} ${formatMoney(cycle.fee_total)} ${formatMoney(cycle.amount_due)}`,
    ),
    payouts: payouts
      .map((payout) => `${nameOf(payout.creator_id)} ${payout.state} ${formatMoney(payout.amount)}`)
      .sort(),
    accounts: await openAccounts(database, [of.merchant, ...of.creators], nameOf),
    deliveries: await deliveriesOf(database, cast.storeId),
    invoicesThere: there(processor.invoices, cycles),
    payoutsThere: there(processor.payouts, payouts),
  }
}

async function openAccounts(
  { reader }: Database,
  owners: string[],
  nameOf: (id: string) => string | undefined,
): Promise<string[]> {
  const accounts = await reader
    .selectFrom('ledger_postings')
    .select((row) => ['account', 'owner_id', row.fn.sum<number>('amount').as('balance')])
    .where('owner_id', 'in', owners)
    .groupBy(['account', 'owner_id'])
    .execute()
  return accounts
    .filter(({ balance }) => balance !== 0)
    .map(
      ({ account, owner_id, balance }) =>
        `${account} of ${nameOf(owner_id) ?? owner_id}: ${formatMoney(balance)}`,
    )
}

async function deliveriesOf({ reader }: Database, storeId: string): Promise<Record<string, number>> {
  const states = await reader
    .selectFrom('inbound_events')
    .select((row) => ['state', row.fn.countAll<number>().as('events')])
    .where('scope', '=', storeId)
    .groupBy('state')
    .orderBy('state')
    .execute()
  return Object.fromEntries(states.map(({ state, events }) => [state, events]))
}
