import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { EventSource } from '../inbox/event-states.ts'
import { dialectOf, type Queries } from '../platform/database/database.ts'
import { isId } from '../platform/ids.ts'
import { MalformedOrder } from '../shopify/fields.ts'
import { readOrderFacts } from '../shopify/order-facts.ts'
import { type Breach, type Invariant, inPages } from './invariant.ts'
import type { Scope } from './scope.ts'

/** A body may have 2 MiB: 32 MB at once. */
const PAGE = 16

/** What must hold of the raw bodies that the retention time has left; both need our own code. */
export const BODY_INVARIANTS: Invariant[] = [
  {
    name: 'bodies-hash',
    statement: 'Each raw body that is still kept is the one whose hash was taken when it came.',
    table: 'inbound_bodies',
    breaches: (db, _keys, scope) =>
      inPages((after: string | null) => readBodies(db, after, scope), eventIdOf, wrongHashes),
  },
  {
    name: 'charges-as-confirmed',
    statement:
      'The payment reference of a charged cycle stands in the event that charged it, while the body of that is kept.',
    table: 'billing_cycles',
    breaches: (db, _keys, scope) =>
      inPages(
        (after: string | null) => readAppliedEvents(db, after, scope, 'processor'),
        eventIdOf,
        (page) => wrongReferences(db, page),
      ),
  },
  {
    name: 'sales-as-reported',
    statement: 'Each sale has the order that its event reported, while the body of that is kept.',
    table: 'inbound_bodies',
    breaches: (db, _keys, scope) =>
      inPages(
        (after: string | null) => readAppliedEvents(db, after, scope, 'store'),
        eventIdOf,
        (page) => wrongOrders(db, page),
      ),
  },
]

interface KeptBody {
  event_id: string
  body: string
  encoding: 'utf8' | 'base64'
}

function eventIdOf({ event_id }: KeptBody): string {
  return event_id
}

function keptBodies(db: Queries, after: string | null, scope: Scope) {
  return (
    db
      .selectFrom('inbound_bodies as kept')
      .innerJoin('inbound_events as event', 'event.id', 'kept.event_id')
      .select(['kept.event_id', 'kept.body', 'kept.encoding'])
      // On both tables: otherwise PostgreSQL may read the events of each page from the first one.
      .$if(after !== null, (query) =>
        query.where('kept.event_id', '>', after ?? '').where('event.id', '>', after ?? ''),
      )
      .where(scope.isNew('kept.event_id'))
      .orderBy('kept.event_id')
      .limit(PAGE)
  )
}

/** Of texts on PostgreSQL, which hashes them where they lie, only those that are not as they were. */
function readBodies(db: Queries, after: string | null, scope: Scope) {
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
    const hash = createHash('sha256').update(bytesOf(row)).digest('hex')
    if (hash === row.body_hash) return []
    return [
      { subject: `event ${row.event_id}`, detail: `its body hashes to ${hash}, not to ${row.body_hash}` },
    ]
  })
}

function bytesOf(row: KeptBody): Buffer {
  return Buffer.from(row.body, row.encoding)
}

function readAppliedEvents(db: Queries, after: string | null, scope: Scope, source: EventSource) {
  return keptBodies(db, after, scope)
    .where('event.source', '=', source)
    .where('event.state', '=', 'done')
    .select('event.result')
    .execute()
}

type AppliedEvent = Awaited<ReturnType<typeof readAppliedEvents>>[number]

async function wrongReferences(db: Queries, page: readonly AppliedEvent[]): Promise<Breach[]> {
  const applied = page.flatMap((event) => {
    const cycleId = idIn(event.result, 'billing_cycle_id')
    return cycleId === null ? [] : [{ event, cycleId }]
  })
  const cycles = await readCycles(db, [...new Set(applied.map(({ cycleId }) => cycleId))])
  return applied.flatMap(({ event, cycleId }) => {
    const cycle = cycles.get(cycleId)
    if (cycle?.state !== 'charged') {
      return [
        { subject: `cycle ${cycleId}`, detail: `event ${event.event_id} charged it, and it is not charged` },
      ]
    }
    if (textsOf(parsed(bytesOf(event).toString('utf8'))).has(cycle.processor_payment_reference ?? ''))
      return []
    const detail = `event ${event.event_id} does not name the payment ${cycle.processor_payment_reference}`
    return [{ subject: `cycle ${cycleId}`, detail }]
  })
}

async function readCycles(db: Queries, ids: readonly string[]) {
  const rows =
    ids.length === 0
      ? []
      : await db
          .selectFrom('billing_cycles')
          .select(['id', 'state', 'processor_payment_reference'])
          .where('id', 'in', ids)
          .execute()
  return new Map(rows.map((row) => [row.id, row]))
}

async function wrongOrders(db: Queries, page: readonly AppliedEvent[]): Promise<Breach[]> {
  const applied = page.map((event) => ({ event, saleId: idIn(event.result, 'sale_id') }))
  const sales = await readOrders(
    db,
    applied.flatMap(({ saleId }) => saleId ?? []),
  )
  return applied.flatMap(({ event, saleId }) => {
    const sale = sales.get(saleId ?? '')
    const detail = sale ? orderDifference(sale, event) : 'its sale is missing'
    return detail === null ? [] : [{ subject: `event ${event.event_id}`, detail }]
  })
}

async function readOrders(db: Queries, saleIds: readonly string[]) {
  const rows =
    saleIds.length === 0
      ? []
      : await db
          .selectFrom('sales')
          .select(['id', 'event_id', 'order_id', 'order_name', 'ordered_at'])
          .where('id', 'in', saleIds)
          .execute()
  return new Map(rows.map((row) => [row.id, row]))
}

type StoredOrder = Awaited<ReturnType<typeof readOrders>> extends Map<string, infer Row> ? Row : never

/** A sale that was decided again has name and time from its second event. */
function orderDifference(sale: StoredOrder, event: AppliedEvent): string | null {
  try {
    const order = readOrderFacts(bytesOf(event).toString('utf8'), '')
    if (order.order_id !== sale.order_id) return `it reported order ${order.order_id}, not ${sale.order_id}`
    if (sale.event_id !== event.event_id) return null
    const isSame = order.order_name === sale.order_name && order.created_at === sale.ordered_at
    return isSame ? null : `the name or time of sale ${sale.id} is not what it reported`
  } catch (error) {
    if (error instanceof MalformedOrder) return `it is about sale ${sale.id}, and its body is no order`
    throw error
  }
}

/** An id in what is kept of an event's outcome; `null` when it was about something else. */
function idIn(result: string | null, field: 'billing_cycle_id' | 'sale_id'): string | null {
  const outcome = parsed(result ?? '') as Record<string, unknown> | null
  const id = typeof outcome === 'object' ? outcome?.[field] : null
  return typeof id === 'string' && isId(id) ? id : null
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
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
