import { createHash } from 'node:crypto'
import { type SqlBool, sql } from 'kysely'
import { jsonOrNull } from '../../shared/json.ts'
import type { EventSource } from '../inbox/event-states.ts'
import { idInResult, type ResultId } from '../inbox/events.service.ts'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries } from '../platform/database/database.ts'
import { MalformedOrder } from '../shopify/fields.ts'
import { type OrderFacts, readOrderFacts } from '../shopify/order-facts.ts'
import { type Breach, type Invariant, inPages } from './invariant.ts'
import type { Scope } from './scope.ts'

/** A body may have 2 MiB: 32 MB at once. */
const PAGE = 16

/** What must hold of the raw bodies that the retention time has left; these checks need our own code. */
export const BODY_INVARIANTS: Invariant[] = [
  {
    name: 'bodies-hash',
    statement: 'Each raw body that is still kept is the one whose hash was taken when it came.',
    table: 'inbound_bodies',
    breaches: (db, _keys, scope) =>
      inPages((after: HashedBody | null) => readBodies(db, after, scope), wrongHashes),
  },
  {
    name: 'charges-as-confirmed',
    statement:
      'The payment reference of a charged cycle stands in the event that charged it, while the body of that is kept.',
    table: 'billing_cycles',
    breaches: (db, _keys, scope) =>
      inPages(
        (after: AppliedEvent | null) => readAppliedEvents(db, after, scope, 'processor', 'billing_cycle_id'),
        (page) => wrongReferences(db, page),
      ),
  },
  {
    name: 'sales-as-reported',
    statement: 'Each sale has the order that its event reported, while the body of that is kept.',
    table: 'inbound_bodies',
    breaches: (db, _keys, scope) =>
      inPages(
        (after: AppliedEvent | null) => readAppliedEvents(db, after, scope, 'store', 'sale_id'),
        (page) => wrongOrders(db, page),
      ),
  },
  {
    name: 'pending-orders-as-reported',
    statement: 'Each pending order has the order that its events reported, while their bodies are kept.',
    table: 'pending_orders',
    breaches: (db, _keys, scope) =>
      inPages(
        (after: AppliedEvent | null) => readAppliedEvents(db, after, scope, 'store', 'pending_order_id'),
        (page) => wrongPendingOrders(db, page),
      ),
  },
]

interface KeptBody {
  event_id: string
  body: string
  encoding: 'utf8' | 'base64'
}

function keptBodies(db: Queries, after: KeptBody | null, scope: Scope) {
  const last = after?.event_id ?? ''
  return (
    db
      .selectFrom('inbound_bodies as kept')
      .innerJoin('inbound_events as event', 'event.id', 'kept.event_id')
      .select(['kept.event_id', 'kept.body', 'kept.encoding'])
      // On both tables: otherwise PostgreSQL may read the events of each page from the first one.
      .$if(after !== null, (query) => query.where('kept.event_id', '>', last).where('event.id', '>', last))
      .where(scope.isNew('kept.event_id'))
      .orderBy('kept.event_id')
      .limit(PAGE)
  )
}

/** Of texts on PostgreSQL, which hashes them where they lie, only those that are not as they were. */
function readBodies(db: Queries, after: KeptBody | null, scope: Scope) {
  const changed = sql<boolean>`(kept.encoding <> 'utf8'
    or encode(sha256(convert_to(kept.body, 'UTF8')), 'hex') <> event.body_hash)`
  return keptBodies(db, after, scope)
    .select('event.body_hash')
    .$if(dialectOf(db) === 'postgresql', (query) => query.where(changed))
    .execute()
}

type HashedBody = Awaited<ReturnType<typeof readBodies>>[number]

function wrongHashes(page: readonly HashedBody[]): Breach[] {
  return page.flatMap((row) => {
    const hash = createHash('sha256').update(row.body, row.encoding).digest('hex')
    if (hash === row.body_hash) return []
    return [
      { subject: `event ${row.event_id}`, detail: `its body hashes to ${hash}, not to ${row.body_hash}` },
    ]
  })
}

interface AppliedEvent extends KeptBody {
  /** The id of what the event changed, by its kept outcome; `null` when it was about something else. */
  subjectId: string | null
}

const IS_PENDING = '{"pending_order_id":%'

async function readAppliedEvents(
  db: Queries,
  after: KeptBody | null,
  scope: Scope,
  source: EventSource,
  field: ResultId,
): Promise<AppliedEvent[]> {
  const events = await keptBodies(db, after, scope)
    .where('event.source', '=', source)
    .where('event.state', '=', 'done')
    .$if(field === 'pending_order_id', (query) => query.where('event.result', 'like', IS_PENDING))
    .$if(field === 'sale_id', (query) => query.where('event.result', 'not like', IS_PENDING))
    .select('event.result')
    .execute()
  return events.map((event) => ({ ...event, subjectId: idInResult(event, field) }))
}

function textOf({ body, encoding }: KeptBody): string {
  return Buffer.from(body, encoding).toString('utf8')
}

/** A condition for the rows that these events are about. */
function areSubjects(db: Queries, page: readonly AppliedEvent[]) {
  const ids = new Set(page.flatMap(({ subjectId }) => subjectId ?? []))
  return sql<SqlBool>`id ${inList(dialectOf(db), 'uuid', [...ids])}`
}

async function wrongReferences(db: Queries, page: readonly AppliedEvent[]): Promise<Breach[]> {
  const rows = await db
    .selectFrom('billing_cycles')
    .select(['id', 'state', 'processor_payment_reference as reference'])
    .where(areSubjects(db, page))
    .execute()
  const cycles = new Map(rows.map((row) => [row.id, row]))
  return page.flatMap((event) => {
    if (event.subjectId === null) return []
    const cycle = cycles.get(event.subjectId)
    const subject = `cycle ${event.subjectId}`
    if (cycle?.state !== 'charged')
      return [{ subject, detail: `event ${event.event_id} charged it, and it is not charged` }]
    if (textsOf(jsonOrNull(textOf(event))).has(cycle.reference ?? '')) return []
    return [{ subject, detail: `event ${event.event_id} does not name the payment ${cycle.reference}` }]
  })
}

async function wrongOrders(db: Queries, page: readonly AppliedEvent[]): Promise<Breach[]> {
  const rows = await readOrders(db, page)
  const sales = new Map(rows.map((row) => [row.id, row]))
  return page.flatMap((event) => {
    const sale = sales.get(event.subjectId ?? '')
    const detail = sale ? orderDifference(sale, event) : 'its sale is missing'
    return detail === null ? [] : [{ subject: `event ${event.event_id}`, detail }]
  })
}

async function wrongPendingOrders(db: Queries, page: readonly AppliedEvent[]): Promise<Breach[]> {
  const rows = await db
    .selectFrom('pending_orders')
    .select(['id', 'order_id'])
    .where(areSubjects(db, page))
    .execute()
  const orders = new Map(rows.map((row) => [row.id, row.order_id]))
  return page.flatMap((event) => {
    if (reportedOrder(event)?.order_id === orders.get(event.subjectId ?? '')) return []
    const detail = `event ${event.event_id} did not report its order`
    return [{ subject: `pending order ${event.subjectId}`, detail }]
  })
}

function readOrders(db: Queries, page: readonly AppliedEvent[]) {
  return db
    .selectFrom('sales')
    .select(['id', 'event_id', 'order_id', 'order_name', 'ordered_at'])
    .where(areSubjects(db, page))
    .execute()
}

/** A sale that was decided again has name and time from its second event. */
function orderDifference(
  sale: Awaited<ReturnType<typeof readOrders>>[number],
  event: AppliedEvent,
): string | null {
  const order = reportedOrder(event)
  if (!order) return `it is about sale ${sale.id}, and its body is not an order`
  if (order.order_id !== sale.order_id) return `it reported order ${order.order_id}, not ${sale.order_id}`
  if (sale.event_id !== event.event_id) return null
  const isSame = order.order_name === sale.order_name && order.created_at === sale.ordered_at
  return isSame ? null : `the name or time of sale ${sale.id} is not what it reported`
}

/** The order in a body; `null` when there is none. */
function reportedOrder(event: AppliedEvent): OrderFacts | null {
  try {
    return readOrderFacts(textOf(event), '')
  } catch (error) {
    if (error instanceof MalformedOrder) return null
    throw error
  }
}

/**
 * Every text and number in a body, as text: where a processor puts its payment reference is settings, which may have
 * changed since the event came.
 */
function textsOf(body: unknown): Set<string> {
  const texts = new Set<string>()
  const rest = [body]
  while (rest.length > 0) {
    const value = rest.pop()
    if (typeof value === 'string') texts.add(value.toWellFormed())
    else if (typeof value === 'number') texts.add(String(value))
    else if (typeof value === 'object' && value !== null) {
      for (const inner of Object.values(value)) rest.push(inner)
    }
  }
  return texts
}
