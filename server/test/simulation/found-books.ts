import { NIL_ID } from '../../platform/ids.ts'
import { type Books, countFlag, linesText, type Row, type Table } from '../oracle/books.ts'
import { clockText } from '../oracle/calendar.ts'
import { rupees } from '../oracle/exact.ts'
import type { Services } from './services.ts'

/** What the services have written, as rows of the same words as the oracle's books. */
export async function foundBooks(services: Services): Promise<Books> {
  await services.ids.refresh()
  const [links, clicks, sales, pendingOrders, cycles, credits, payouts, balances, eventRows] =
    await Promise.all([
      linkTable(services),
      clickTable(services),
      saleTable(services),
      pendingTable(services),
      cycleTable(services),
      creditTable(services),
      payoutTable(services),
      balanceTable(services),
      readEvents(services),
    ])
  const keys = eventKeys(services, eventRows)
  const events = new Map(
    eventRows.map((row) => [keys.get(row.id) ?? '', { state: row.state, tries: row.attempts }]),
  )
  const flags = await flagTable(services, keys)
  const held = heldTable(services)
  return {
    ...{ links, clicks, sales, cycles, credits, payouts, balances, events, flags },
    'pending orders': pendingOrders,
    'at the processor': held,
  }
}

function reader(services: Services) {
  return services.platform.database.reader
}

function timeText(moment: number | null): string | null {
  return moment === null ? null : clockText(moment)
}

async function linkTable(services: Services): Promise<Table> {
  const rows = await reader(services).selectFrom('affiliate_links').selectAll().execute()
  return new Map(
    rows.map((row) => [
      services.ids.knownName(row.id) ?? '',
      {
        rate: row.commission_rate,
        window_days: row.attribution_window_days,
        products: (JSON.parse(row.product_ids ?? '[]') as string[]).join(' '),
      },
    ]),
  )
}

async function clickTable(services: Services): Promise<Table> {
  const rows = await reader(services).selectFrom('clicks').selectAll().execute()
  return new Map(
    rows.map((row) => [
      row.id,
      { link: services.ids.knownName(row.link_id), at: clockText(row.created_at), tracked: row.tracked },
    ]),
  )
}

async function saleTable(services: Services): Promise<Table> {
  const rows = await reader(services)
    .selectFrom('sales')
    .leftJoin('sale_decisions as former', 'former.sale_id', 'sales.id')
    .selectAll('sales')
    .select('former.decided_at as formerly_decided_at')
    .execute()
  const name = (id: string | null) => services.ids.knownName(id)
  return new Map(
    rows.map((row) => [
      `${name(row.store_id)} order ${row.order_id}`,
      {
        verdict: row.rejection_reason ?? row.acceptance_status,
        basis: rupees(row.net_amount),
        rate: row.commission_rate,
        commission: rupees(row.commission),
        fee: rupees(row.platform_fee),
        link: name(row.link_id),
        code: row.coupon_code,
        ordered: clockText(row.ordered_at),
        decided: clockText(row.decided_at ?? row.created_at),
        'not paid until then, since': timeText(row.formerly_decided_at),
        cycle: name(row.billing_cycle_id),
      },
    ]),
  )
}

async function pendingTable(services: Services): Promise<Table> {
  const rows = await reader(services)
    .selectFrom('pending_orders as pending')
    .leftJoin('sales as sale', 'sale.id', 'pending.sale_id')
    .selectAll('pending')
    .select(['sale.store_id as sale_store_id', 'sale.order_id as sale_order_id'])
    .execute()
  const name = (id: string | null) => services.ids.knownName(id)
  return new Map(
    rows.map((row) => [
      `${name(row.store_id)} order ${row.order_id}`,
      {
        state: row.state,
        link: name(row.link_id),
        code: row.coupon_code,
        expected: rupees(row.expected_commission),
        placed: clockText(row.placed_at),
        sale: row.sale_id === null ? null : `${name(row.sale_store_id)} order ${row.sale_order_id}`,
      },
    ]),
  )
}

async function cycleTable(services: Services): Promise<Table> {
  const rows = await reader(services).selectFrom('billing_cycles').selectAll().execute()
  const calls = await callRows(services)
  return new Map(
    rows.map((row) => [
      services.ids.knownName(row.id) ?? '',
      {
        state: row.state,
        start: clockText(row.period_start),
        end: clockText(row.period_end),
        sales: row.sales_count,
        commission: rupees(row.commission_total),
        fee: rupees(row.fee_total),
        credit: rupees(row.credit_total),
        due: rupees(row.amount_due),
        closed: timeText(row.closed_at),
        charged: timeText(row.charged_at),
        payment: row.processor_payment_reference,
        ...calls(row.id),
      },
    ]),
  )
}

async function creditTable(services: Services): Promise<Table> {
  const rows = await reader(services).selectFrom('credits').selectAll().execute()
  return new Map(
    rows.map((row) => [
      row.reference,
      { merchant: services.ids.knownName(row.merchant_id), amount: rupees(row.amount) },
    ]),
  )
}

async function payoutTable(services: Services): Promise<Table> {
  const rows = await reader(services).selectFrom('payouts').selectAll().execute()
  const lines = await reader(services).selectFrom('payout_lines').selectAll().execute()
  const calls = await callRows(services)
  const linesOf = Map.groupBy(lines, (line) => line.payout_id)
  return new Map(
    rows.map((row) => [
      services.ids.knownName(row.id) ?? '',
      {
        state: row.state,
        amount: rupees(row.amount),
        lines: linesText(
          (linesOf.get(row.id) ?? []).map((line) => ({
            cycle: services.ids.knownName(line.billing_cycle_id) ?? '',
            amount: line.amount,
          })),
          services.processor.payoutUnit,
        ),
        made: clockText(row.created_at),
        submitted: timeText(row.submitted_at),
        settled: timeText(row.settled_at),
        failure: row.failure_reason,
        ...calls(row.id),
      },
    ]),
  )
}

/** How the call about a cycle or payout stands. */
async function callRows(services: Services): Promise<(subjectId: string) => Row> {
  const rows = await reader(services)
    .selectFrom('processor_attempts')
    .select(['subject_id', 'state', 'tries'])
    .orderBy('id')
    .execute()
  const bySubject = new Map(rows.map((row) => [row.subject_id, { call: row.state, tries: row.tries }]))
  return (subjectId) => bySubject.get(subjectId) ?? { call: null, tries: 0 }
}

async function balanceTable(services: Services): Promise<Table> {
  const rows = await reader(services)
    .selectFrom('ledger_postings')
    .select((query) => ['account', 'owner_id', query.fn.sum<number>('amount').as('balance')])
    .groupBy(['account', 'owner_id'])
    .execute()
  const owner = (id: string) => (id === NIL_ID ? 'the platform' : services.ids.knownName(id))
  return new Map(
    rows
      .filter((row) => row.balance !== 0)
      .map((row) => [`${row.account} of ${owner(row.owner_id)}`, { balance: rupees(row.balance) }]),
  )
}

function readEvents(services: Services) {
  return reader(services)
    .selectFrom('inbound_events')
    .select(['id', 'scope', 'delivery_id', 'state', 'attempts'])
    .orderBy('id')
    .execute()
}

/** Each event's name by its id: scope and delivery, and which other body it is. */
function eventKeys(services: Services, rows: Awaited<ReturnType<typeof readEvents>>): Map<string, string> {
  const keys = new Map<string, string>()
  const seen = new Map<string, number>()
  for (const row of rows) {
    const delivery = `${services.ids.knownName(row.scope)} ${row.delivery_id}`
    const earlier = seen.get(delivery) ?? 0
    seen.set(delivery, earlier + 1)
    keys.set(row.id, earlier === 0 ? delivery : `${delivery} other body ${earlier}`)
  }
  return keys
}

async function flagTable(services: Services, events: ReadonlyMap<string, string>): Promise<Table> {
  const rows = await reader(services)
    .selectFrom('flags')
    .select(['kind', 'subject_type', 'subject_id', 'status'])
    .execute()
  const table: Table = new Map()
  for (const { kind, subject_type, subject_id, status } of rows) {
    const named = events.get(subject_id) ?? services.ids.knownName(subject_id)
    const about =
      subject_type === 'processor_event_type' ? subject_id : (storeEvents(services, subject_id) ?? named)
    countFlag(table, `${kind} about ${about}`, status === 'open')
  }
  return table
}

/** A store's name and the class of its events that a flag is about; `null` for other subjects. */
function storeEvents(services: Services, subject: string): string | null {
  const [storeId = '', name] = subject.split(':')
  return name === undefined ? null : `${services.ids.knownName(storeId)} ${name}`
}

function heldTable(services: Services): Table {
  const { invoices, payouts } = services.processor.scripted
  const table: Table = new Map()
  for (const { reference, amount } of [...invoices, ...payouts]) {
    const name = services.ids.knownName(reference) ?? ''
    table.set(table.has(name) ? `${name}, once more` : name, { amount: rupees(amount) })
  }
  return table
}
