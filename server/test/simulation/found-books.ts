import { NIL_ID } from '../../platform/ids.ts'
import { type Books, countFlag, linesText, type Row, type Table, tableOf, timeText } from '../oracle/books.ts'
import { clockText } from '../oracle/calendar.ts'
import { rupees } from '../oracle/exact.ts'
import { columnsOf, rowsOf } from '../testkit/rows.ts'
import type { Services } from './services.ts'

/** What the services have written, as rows of the same words as the oracle's books. */
export async function foundBooks(services: Services): Promise<Books> {
  const { ids, platform } = services
  await ids.refresh()
  const name = (id: string | null) => ids.knownName(id)
  const nameOf = ({ id }: { id: string }) => ids.knownName(id) ?? ''
  const lines = Map.groupBy(await rowsOf(platform, 'payout_lines', {}, 'payout_id'), (line) => line.payout_id)
  const events = await readEvents(services)
  const keys = eventKeys(services, events)
  const calls = await callRows(services)
  return {
    links: tableOf(await rowsOf(platform, 'affiliate_links'), (row) => [
      nameOf(row),
      {
        rate: row.commission_rate,
        window_days: row.attribution_window_days,
        products: (JSON.parse(row.product_ids ?? '[]') as string[]).join(' '),
      },
    ]),
    clicks: tableOf(await rowsOf(platform, 'clicks'), (row) => [
      row.id,
      { link: name(row.link_id), at: clockText(row.created_at), tracked: row.tracked },
    ]),
    sales: await saleTable(services),
    'pending orders': await pendingTable(services),
    cycles: tableOf(await rowsOf(platform, 'billing_cycles'), (row) => [
      nameOf(row),
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
    credits: tableOf(await rowsOf(platform, 'credits'), (row) => [
      row.reference,
      { merchant: name(row.merchant_id), amount: rupees(row.amount) },
    ]),
    payouts: tableOf(await rowsOf(platform, 'payouts'), (row) => [
      nameOf(row),
      {
        state: row.state,
        amount: rupees(row.amount),
        lines: linesText(
          (lines.get(row.id) ?? []).map((line) => ({
            cycle: name(line.billing_cycle_id) ?? '',
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
    balances: await balanceTable(services),
    events: tableOf(events, (row) => [keys.get(row.id) ?? '', { state: row.state, tries: row.attempts }]),
    flags: await flagTable(services, keys),
    'at the processor': heldTable(services),
  }
}

async function pendingTable({ ids, platform }: Services): Promise<Table> {
  const sales = new Map((await rowsOf(platform, 'sales')).map((sale) => [sale.id, sale]))
  const order = (row: { store_id: string; order_id: string } | undefined) =>
    row ? `${ids.knownName(row.store_id)} order ${row.order_id}` : null
  return tableOf(await rowsOf(platform, 'pending_orders'), (row) => [
    order(row) ?? '',
    {
      state: row.state,
      link: ids.knownName(row.link_id),
      code: row.coupon_code,
      expected: rupees(row.expected_commission),
      placed: clockText(row.placed_at),
      sale: order(sales.get(row.sale_id ?? '')),
    },
  ])
}

async function saleTable({ ids, platform }: Services): Promise<Table> {
  const decisions = await rowsOf(platform, 'sale_decisions', {}, 'sale_id')
  const formerly = new Map(decisions.map(({ sale_id, decided_at }) => [sale_id, decided_at]))
  return tableOf(await rowsOf(platform, 'sales'), (row) => [
    `${ids.knownName(row.store_id)} order ${row.order_id}`,
    {
      verdict: row.rejection_reason ?? row.acceptance_status,
      basis: rupees(row.net_amount),
      rate: row.commission_rate,
      commission: rupees(row.commission),
      fee: rupees(row.platform_fee),
      link: ids.knownName(row.link_id),
      code: row.coupon_code,
      ordered: clockText(row.ordered_at),
      decided: clockText(row.decided_at ?? row.created_at),
      'not paid until then, since': timeText(formerly.get(row.id) ?? null),
      cycle: ids.knownName(row.billing_cycle_id),
    },
  ])
}

/** How the call about a cycle or payout stands. */
async function callRows({ platform }: Services): Promise<(subjectId: string) => Row> {
  const rows = await columnsOf(platform, 'processor_attempts', ['subject_id', 'state', 'tries'])
  const bySubject = new Map(rows.map((row) => [row.subject_id, { call: row.state, tries: row.tries }]))
  return (subjectId) => bySubject.get(subjectId) ?? { call: null, tries: 0 }
}

async function balanceTable({ ids, platform }: Services): Promise<Table> {
  const rows = await platform.database.reader
    .selectFrom('ledger_postings')
    .select((query) => ['account', 'owner_id', query.fn.sum<number>('amount').as('balance')])
    .groupBy(['account', 'owner_id'])
    .execute()
  const owner = (id: string) => (id === NIL_ID ? 'the platform' : ids.knownName(id))
  return tableOf(
    rows.filter((row) => row.balance !== 0),
    (row) => [`${row.account} of ${owner(row.owner_id)}`, { balance: rupees(row.balance) }],
  )
}

function readEvents({ platform }: Services) {
  return columnsOf(platform, 'inbound_events', ['id', 'scope', 'delivery_id', 'state', 'attempts'])
}

/** Each event's name by its id: scope and delivery, and which other body it is. */
function eventKeys({ ids }: Services, rows: Awaited<ReturnType<typeof readEvents>>): Map<string, string> {
  const keys = new Map<string, string>()
  const seen = new Map<string, number>()
  for (const row of rows) {
    const delivery = `${ids.knownName(row.scope)} ${row.delivery_id}`
    const earlier = seen.get(delivery) ?? 0
    seen.set(delivery, earlier + 1)
    keys.set(row.id, earlier === 0 ? delivery : `${delivery} other body ${earlier}`)
  }
  return keys
}

async function flagTable({ ids, platform }: Services, events: ReadonlyMap<string, string>): Promise<Table> {
  const rows = await columnsOf(platform, 'flags', ['kind', 'subject_type', 'subject_id', 'status'])
  const table: Table = new Map()
  for (const { kind, subject_type, subject_id, status } of rows) {
    // A store's events share a flag about their store and their class.
    const [storeId = '', classOfEvents] = subject_id.split(':')
    const ofStore = classOfEvents === undefined ? null : `${ids.knownName(storeId)} ${classOfEvents}`
    const named = ofStore ?? events.get(subject_id) ?? ids.knownName(subject_id)
    const about = subject_type === 'processor_event_type' ? subject_id : named
    countFlag(table, `${kind} about ${about}`, status === 'open')
  }
  return table
}

function heldTable({ ids, processor }: Services): Table {
  const table: Table = new Map()
  for (const { reference, amount } of [...processor.invoices, ...processor.payouts]) {
    const name = ids.knownName(reference) ?? ''
    table.set(table.has(name) ? `${name}, once more` : name, { amount: rupees(amount) })
  }
  return table
}
