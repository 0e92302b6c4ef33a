import { totalsOf } from './billing.ts'
import { clockText } from './calendar.ts'
import { rupees } from './exact.ts'
import type { PendingOrder, Sale, State } from './state.ts'

export type Row = Record<string, string | number | null>
export type Table = Map<string, Row>

export const TABLES = [
  'links',
  'clicks',
  'sales',
  'pending orders',
  'cycles',
  'credits',
  'payouts',
  'balances',
  'events',
  'flags',
  'at the processor',
] as const

/** The books as rows of words, by names that a story gives; what is compared with what the services wrote. */
export type Books = Record<(typeof TABLES)[number], Table>

export function booksOf(state: State): Books {
  return {
    links: tableOf(state.links.values(), ({ name, terms }) => [
      name,
      { rate: terms.rate, window_days: terms.windowDays, products: terms.productIds.join(' ') },
    ]),
    clicks: tableOf(state.clicks.values(), ({ id, link, at, tracked }) => [
      id,
      { link: link.name, at: clockText(at), tracked: tracked ? 1 : 0 },
    ]),
    sales: tableOf(state.sales, (sale) => [`${sale.store} order ${sale.orderId}`, saleRow(sale)]),
    'pending orders': tableOf(state.pendingOrders, (one) => [
      `${one.store} order ${one.orderId}`,
      pendingRow(state, one),
    ]),
    cycles: tableOf(state.cycles, (cycle) => [cycle.name, cycleRow(state, cycle)]),
    credits: tableOf(state.credits, ({ reference, merchant, amount }) => [
      reference,
      { merchant, amount: rupees(amount) },
    ]),
    payouts: tableOf(state.payouts, (payout) => [payout.name, payoutRow(state, payout)]),
    balances: tableOf(
      [...state.balances].filter(([, balance]) => balance !== 0),
      ([account, balance]) => [account, { balance: rupees(balance) }],
    ),
    events: tableOf(state.events, (event) => [event.key, { state: event.state, tries: event.tries }]),
    flags: flagTable(state),
    'at the processor': tableOf(
      state.calls.filter((call) => call.held !== null),
      (call) => [call.subject, { amount: rupees(call.amount) }],
    ),
  }
}

export function tableOf<T>(things: Iterable<T>, entry: (thing: T) => [key: string, row: Row]): Table {
  return new Map([...things].map(entry))
}

export function timeText(moment: number | null): string | null {
  return moment === null ? null : clockText(moment)
}

function saleRow(sale: Sale): Row {
  return {
    verdict: sale.reason ?? 'accepted',
    basis: rupees(sale.basis),
    rate: sale.rate,
    commission: rupees(sale.commission),
    fee: rupees(sale.fee),
    link: sale.link?.name ?? null,
    code: sale.code,
    ordered: clockText(sale.placedAt),
    decided: clockText(sale.decidedAt),
    'not paid until then, since': timeText(sale.formerlyDecidedAt),
    cycle: sale.cycle?.name ?? null,
  }
}

function pendingRow(state: State, pending: PendingOrder): Row {
  const { store, orderId, cancelled, expired } = pending
  const sale = state.sales.find(
    (one) => one.store === store && one.orderId === orderId && one.reason !== 'not_paid',
  )
  const waiting = cancelled ? 'cancelled' : expired ? 'expired' : 'pending'
  const { link, code, placedAt, commission } = sale?.link
    ? sale
    : { ...pending, commission: pending.expected }
  return {
    state: sale ? 'became_sale' : waiting,
    link: link?.name ?? null,
    code,
    expected: rupees(commission),
    placed: clockText(placedAt),
    sale: sale ? `${store} order ${orderId}` : null,
  }
}

function cycleRow(state: State, cycle: State['cycles'][number]): Row {
  const { commission, fee } = totalsOf(state, cycle)
  return {
    state: cycle.state,
    start: clockText(cycle.start),
    end: clockText(cycle.end),
    sales: state.sales.filter((sale) => sale.cycle === cycle).length,
    commission: rupees(commission),
    fee: rupees(fee),
    credit: rupees(cycle.creditUsed),
    due: rupees(cycle.due),
    closed: timeText(cycle.closedAt),
    charged: timeText(cycle.chargedAt),
    payment: cycle.paymentReference,
    ...callRow(state, cycle.name),
  }
}

function payoutRow(state: State, payout: State['payouts'][number]): Row {
  return {
    state: payout.state,
    amount: rupees(payout.amount),
    lines: linesText(
      payout.lines.map(({ cycle, amount }) => ({ cycle: cycle.name, amount })),
      state.settings.payoutUnit,
    ),
    made: clockText(payout.createdAt),
    submitted: timeText(payout.submittedAt),
    settled: timeText(payout.settledAt),
    failure: payout.failureReason,
    ...callRow(state, payout.name),
  }
}

/**
 * The parts of a payout, whatever order they were read in. Which share a payout in whole units cuts is left open, so only their sum is
 * shown then.
 */
export function linesText(lines: { cycle: string; amount: number }[], payoutUnit: number): string {
  if (payoutUnit > 1) return `in all ${rupees(lines.reduce((sum, { amount }) => sum + amount, 0))}`
  return lines
    .map(({ cycle, amount }) => `${cycle}: ${rupees(amount)}`)
    .sort()
    .join(', ')
}

function callRow(state: State, subject: string): Row {
  const call = state.calls.find((one) => one.subject === subject)
  return { call: call?.state ?? null, tries: call?.tries ?? 0 }
}

function flagTable(state: State): Table {
  const table: Table = new Map()
  for (const { kind, about, open } of state.flags) countFlag(table, `${kind} about ${about}`, open)
  return table
}

export function countFlag(table: Table, key: string, open: boolean): void {
  const row = table.get(key) ?? { open: 0, resolved: 0 }
  table.set(key, row)
  const column = open ? 'open' : 'resolved'
  row[column] = Number(row[column]) + 1
}
