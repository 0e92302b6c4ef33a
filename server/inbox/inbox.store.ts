import { hash } from 'node:crypto'
import { type Selectable, sql } from 'kysely'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { rowProblem } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import { LeaseQueue, type Only } from '../platform/queue/lease-queue.ts'
import type { EventSource, EventState, SetAsideCode } from './event-states.ts'
import { LONGEST_DELAY_MS } from './retry.rule.ts'

export type EventRow = Selectable<Schema['inbound_events']>

/** Pending events. The events of a sender are applied in the order in which they came. */
export const EVENT_QUEUE = new LeaseQueue<EventRow>({
  name: 'inbound_events',
  isOpen: sql`state = 'pending'`,
  dueAt: 'next_attempt_at',
  leaseUntil: 'lease_until',
  attempts: 'attempts',
  lane: { column: 'scope', type: 'text' },
  maxDelayMs: LONGEST_DELAY_MS,
})

export function fromSource(source: EventSource): Only {
  return sql`source = ${source}`
}

/** What became of an event, and the lease under which it was applied. */
export interface Settlement {
  row_id: string
  token: string
  state: EventState
  reason: string | null
  reason_code: SetAsideCode | null
  result: string | null
  attempts: number
  next_attempt_at: number
  finished_at: number | null
}

/** Ends the leases of these events; returns the ids of those that were still held under their token. */
export function settleStatement(db: Queries, settlements: readonly Settlement[]) {
  return EVENT_QUEUE.completeManyStatement<Omit<Settlement, 'row_id' | 'token'>>(
    db,
    {
      state: 'text',
      reason: 'text',
      reason_code: 'text',
      result: 'text',
      attempts: 'int',
      next_attempt_at: 'bigint',
      finished_at: 'bigint',
    },
    settlements,
  )
}

export function eventsByIds(db: Queries, ids: readonly string[]): Promise<EventRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  return db.selectFrom('inbound_events').selectAll().where('id', 'in', ids).execute()
}

/** Makes events due with all their attempts left, except those that are held or settled. Returns how many. */
export async function makeDue(tx: Tx, ids: readonly string[], now: number): Promise<number> {
  const due = { state: 'pending', attempts: 0, next_attempt_at: now, finished_at: null } as const
  const updated = await tx
    .updateTable('inbound_events')
    .set({ ...due, lease_token: null, lease_until: 0 })
    .where('id', 'in', ids)
    .where('state', 'in', ['pending', 'set_aside'])
    .where((where) => where.or([where('lease_token', 'is', null), where('lease_until', '<=', now)]))
    .executeTakeFirst()
  return Number(updated.numUpdatedRows)
}

export interface BodyRow {
  event_id: string
  body: string
  encoding: 'utf8' | 'base64'
}

/** A raw body, read as UTF-8. */
export function textOf({ body, encoding }: BodyRow): string {
  return encoding === 'utf8' ? body : Buffer.from(body, encoding).toString('utf8')
}

/** SHA-256 of a raw body as it came, hex. */
export function bodyHashOf({ body, encoding }: BodyRow): string {
  return hash('sha256', encoding === 'utf8' ? body : Buffer.from(body, encoding), 'hex')
}

/**
 * Why an event is not the one that intake verified and sealed; `null` when it is. `bodyHash`: of the stored body; `undefined` when it was
 * removed or not loaded.
 */
export function eventProblem(keys: AppKeys, row: EventRow, bodyHash: string | undefined): string | null {
  const problem = rowProblem(keys, 'inbound_events', row)
  if (problem !== null) return problem
  return bodyHash === undefined || bodyHash === row.body_hash
    ? null
    : 'its body is not the one that was received'
}

/** The raw bodies of these events, of those that still have one, by event id. */
export async function readBodies(db: Queries, eventIds: readonly string[]): Promise<Map<string, BodyRow>> {
  if (eventIds.length === 0) return new Map()
  const { rows } = await bodiesStatement(db, eventIds).execute(db)
  return new Map(rows.map((row) => [row.event_id, row]))
}

export function bodiesStatement(db: Queries, eventIds: readonly string[]) {
  return sql<BodyRow>`select event_id, body, encoding from ${bodiesOf(db, eventIds)}`
}

/** UTF-8 bytes of the stored bodies. Both databases know them without reading the bodies. */
export function bodySizesStatement(db: Queries, eventIds: readonly string[]) {
  return sql<{ event_id: string; bytes: number }>`
    select event_id, octet_length(body) as bytes from ${bodiesOf(db, eventIds)}`
}

/** The `offset` leaves PostgreSQL, which may not know the size of the table yet, no plan but one look-up for each id. */
function bodiesOf(db: Queries, eventIds: readonly string[]) {
  if (dialectOf(db) === 'sqlite')
    return sql`inbound_bodies as body where event_id ${inList('sqlite', 'uuid', eventIds)}`
  return sql`unnest(cast(${eventIds} as uuid[])) as given (id) cross join lateral (
    select * from inbound_bodies as body where event_id = given.id offset 0) as found`
}

/** The leading ids whose bodies take at most `maxBytes` together, but at least one. Loads no body. */
export async function leadingUpToBytes(
  db: Queries,
  eventIds: readonly string[],
  maxBytes: number,
): Promise<readonly string[]> {
  if (eventIds.length < 2) return eventIds
  const { rows } = await bodySizesStatement(db, eventIds).execute(db)
  const sizes = new Map(rows.map(({ event_id, bytes }) => [event_id, Number(bytes)]))
  let sum = 0
  const end = eventIds.findIndex((id, index) => {
    sum += sizes.get(id) ?? 0
    return index > 0 && sum > maxBytes
  })
  return end === -1 ? eventIds : eventIds.slice(0, end)
}
