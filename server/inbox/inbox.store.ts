import { type Selectable, sql } from 'kysely'
import type { Dialect, Queries, Tx } from '../platform/database.ts'
import { among, rowSet } from '../platform/row-set.ts'
import type { Schema } from '../platform/schema.ts'
import type { EventSource, EventState } from './event-words.ts'

export type EventRow = Selectable<Schema['inbound_events']>
export interface Lease {
  token: string
  until: number
}

/** What a worker needs of an event that it has leased. */
const CLAIMED = [
  'id',
  'source',
  'scope',
  'delivery_id',
  'conflict_hash',
  'topic',
  'received_at',
  'attempts',
  'lease_token',
] as const

export interface ClaimedRow extends Pick<EventRow, (typeof CLAIMED)[number]> {
  body: string | null
  encoding: 'utf8' | 'base64' | null
}

/** Any number that no other part of the service takes as its advisory lock. */
const CLAIM_LOCK = 7_041_948

export interface Claim {
  source: EventSource
  now: number
  limit: number
  lease: Lease
  /** PostgreSQL only: no scopes but this lane's, and of theirs only what is among the first events that are due. */
  lane: Lane | null
}

/**
 * Leases up to `limit` due events of a source, oldest first, leaving out every scope of which somebody holds events
 * already: so two workers never have events of one store at once, and a store's order is kept.
 */
export async function claimDueEvents(
  tx: Tx,
  dialect: 'sqlite' | 'postgresql',
  claim: Claim,
): Promise<ClaimedRow[]> {
  if (dialect === 'postgresql') return claimInOne(tx, claim)
  // The transaction holds the write lock already.
  const due = await readDueEvents(tx, claim)
  if (due.length === 0) return []
  const ids = due.map((row) => row.id)
  const leased = await tx
    .updateTable('inbound_events')
    .set({ lease_token: claim.lease.token, lease_until: claim.lease.until })
    .where(sql<boolean>`id ${among(dialect, 'uuid', ids)}`)
    // The plus sign keeps SQLite from looking through all that is pending instead of the few ids.
    .where(sql<boolean>`+lease_until <= ${claim.now}`)
    .returning('id')
    .execute()
  const ours = new Set(leased.map((row) => row.id))
  return due.filter((row) => ours.has(row.id))
}

/** The events that `claimDueEvents` would lease on SQLite, without leasing them. */
export function readDueEvents(db: Queries, claim: Claim): Promise<ClaimedRow[]> {
  return dueEvents(db, claim)
    .leftJoin('inbound_bodies as body', 'body.event_id', 'event.id')
    .select(CLAIMED.map((column) => `event.${column}` as const))
    .select(['body.body', 'body.encoding'])
    .execute()
}

/** The scopes of which somebody holds events. */
export function heldScopes(db: Queries, { now, lease }: Pick<Claim, 'now' | 'lease'>) {
  return (
    db
      .selectFrom('inbound_events as held')
      .select('held.scope')
      .where('held.state', '=', 'pending')
      .where('held.lease_token', 'is not', null)
      .where('held.lease_until', '>', now)
      // One that ends later than any given now was given before the clock was put back.
      .where('held.lease_until', '<=', lease.until)
  )
}

function dueEvents(db: Queries, claim: Claim) {
  return db
    .selectFrom('inbound_events as event')
    .where('event.state', '=', 'pending')
    .where('event.source', '=', claim.source)
    .where('event.next_attempt_at', '<=', claim.now)
    .where('event.scope', 'not in', heldScopes(db, claim))
    .orderBy('event.next_attempt_at')
    .orderBy('event.id')
    .limit(claim.limit)
}

/**
 * Reads and leases in one statement. The array and the `offset` leave the planner, who may know nothing of the tables yet, no
 * other way than by their keys. Whoever held an event until its lease ran out may have settled it since it was read.
 */
async function claimInOne(tx: Tx, claim: Claim): Promise<ClaimedRow[]> {
  // In a statement of its own: what the next one sees must be what those who had the lock before have written.
  await sql`select pg_advisory_xact_lock(${CLAIM_LOCK})`.execute(tx)
  const { now, lease } = claim
  const found = await sql<ClaimedRow>`
    with leased as (
      update inbound_events as event set lease_token = ${lease.token}, lease_until = ${lease.until}
      where event.id = any(array(${dueInLane(tx, claim)}))
        and event.state = 'pending' and event.next_attempt_at <= ${now} and event.lease_until <= ${now}
      returning event.next_attempt_at, ${columnsOf('event')}
    )
    select ${columnsOf('leased')}, found.body, found.encoding
    from leased left join lateral (
      select body.body, body.encoding from inbound_bodies as body where body.event_id = leased.id offset 0
    ) as found on true
    order by leased.next_attempt_at, leased.id`.execute(tx)
  return found.rows
}

const columnsOf = (table: string) => sql.join(CLAIMED.map((column) => sql.ref(`${table}.${column}`)))

/** One of several parts of the stores, by a hash of their ids. */
export interface Lane {
  index: number
  of: number
}

/** A lane looks no further than this many batches: all that waits may be another lane's. */
const LANE_WINDOW = 4

function dueInLane(tx: Tx, claim: Claim) {
  const { lane, limit } = claim
  if (lane === null) return dueEvents(tx, claim).select('event.id')
  const window = dueEvents(tx, { ...claim, limit: LANE_WINDOW * limit }).select([
    'event.id',
    'event.scope',
    'event.next_attempt_at',
  ])
  return tx
    .selectFrom(window.as('event'))
    .select('event.id')
    .where(sql<boolean>`mod(hashtextextended(event.scope, 0), ${lane.of}) in (${lane.index}, ${-lane.index})`)
    .orderBy('event.next_attempt_at')
    .orderBy('event.id')
    .limit(limit)
}

interface Beyond {
  source: EventSource
  /** Epoch ms. */
  after: number
}

/** Whether a pending event waits for a time after `after`. */
export async function waitsBeyond(db: Queries, { source, after }: Beyond): Promise<boolean> {
  const row = await db
    .selectFrom('inbound_events')
    .select('id')
    .where('state', '=', 'pending')
    .where('source', '=', source)
    .where('next_attempt_at', '>', after)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Makes the pending events that wait for a time after `after` due at `now` (epoch ms), and ends their leases. */
export async function bringEventsBack(tx: Tx, { source, after }: Beyond, now: number): Promise<void> {
  await tx
    .updateTable('inbound_events')
    .set({ next_attempt_at: now, lease_token: null, lease_until: 0 })
    .where('state', '=', 'pending')
    .where('source', '=', source)
    .where('next_attempt_at', '>', after)
    .execute()
}

export interface Settlement {
  event_id: string
  /** The lease under which it was applied; on SQLite where none was taken, the one that stood there, or `noLease`. */
  lease_token: string
  state: EventState
  reason: string | null
  result: string | null
  attempts: number
  next_attempt_at: number
  finished_at: number | null
}

const settlementRows = rowSet<Settlement>('settled', {
  event_id: 'uuid',
  lease_token: 'text',
  state: 'text',
  reason: 'text',
  result: 'text',
  attempts: 'int',
  next_attempt_at: 'bigint',
  finished_at: 'bigint',
})

/** Stands for the lease token of an event that nobody has leased since it was tried so many times. */
export function noLease(attempts: number): string {
  return `${NO_LEASE}${attempts}`
}

const NO_LEASE = 'none after '

/** Ends the leases of these events with what became of each; answers the ids of those whose lease was still the one named. */
export async function settleEvents(
  tx: Tx,
  dialect: Dialect,
  settlements: readonly Settlement[],
): Promise<Set<string>> {
  // The plus sign keeps SQLite from looking through all that is pending instead of the few ids.
  const pending = dialect === 'sqlite' ? sql`+event.state` : sql`event.state`
  const noLease = sql`${sql.lit(NO_LEASE)} || event.attempts`
  const token = dialect === 'sqlite' ? sql`coalesce(event.lease_token, ${noLease})` : sql`event.lease_token`
  const settled = await sql<{ id: string }>`
    update inbound_events as event
    set state = settled.state, reason = settled.reason, result = settled.result, attempts = settled.attempts,
      next_attempt_at = settled.next_attempt_at, finished_at = settled.finished_at, lease_token = null, lease_until = 0
    from ${settlementRows(dialect, settlements)}
    where event.id = settled.event_id and ${pending} = 'pending' and ${token} = settled.lease_token
    returning id`.execute(tx)
  return new Set(settled.rows.map((row) => row.id))
}

/** When the next pending event of a source falls due (epoch ms); `null` when none waits. */
export async function nextDueAt(db: Queries, source: EventSource): Promise<number | null> {
  const row = await db
    .selectFrom('inbound_events')
    .select('next_attempt_at')
    .where('state', '=', 'pending')
    .where('source', '=', source)
    .orderBy('next_attempt_at')
    .limit(1)
    .executeTakeFirst()
  return row?.next_attempt_at ?? null
}

/** Counts the `most` first pending events of a source along the index of what falls due. */
export async function countPending(
  db: Queries,
  source: EventSource,
  most: number,
): Promise<{ waiting: number; oldest: number | null }> {
  const row = await db
    .selectFrom((from) =>
      from
        .selectFrom('inbound_events')
        .select('received_at')
        .where('state', '=', 'pending')
        .where('source', '=', source)
        .orderBy('next_attempt_at')
        .limit(most)
        .as('pending'),
    )
    .select((select) => [
      select.fn.countAll<number>().as('waiting'),
      select.fn.min<number | null>('received_at').as('oldest'),
    ])
    .executeTakeFirstOrThrow()
  return row
}

export interface EventFilter {
  source?: EventSource | undefined
  state?: EventState | undefined
  /** One sender's delivery: the event, and those that came under the same id with another body. */
  delivery?: { scope: string; deliveryId: string } | undefined
  limit: number
}

/** Newest first. */
export function findEvents(db: Queries, filter: EventFilter): Promise<EventRow[]> {
  const { source, state, delivery, limit } = filter
  let query = db.selectFrom('inbound_events').selectAll().orderBy('id', 'desc').limit(limit)
  if (source) query = query.where('source', '=', source)
  if (state) query = query.where('state', '=', state)
  if (delivery) {
    query = query.where('scope', '=', delivery.scope).where('delivery_id', '=', delivery.deliveryId)
  }
  return query.execute()
}

/** Removes raw bodies of finished events that came before `before` (epoch ms). Answers how many went. */
export async function deleteOldBodies(tx: Tx, before: number, limit: number): Promise<number> {
  const old = await tx
    .selectFrom('inbound_events as event')
    .innerJoin('inbound_bodies as body', 'body.event_id', 'event.id')
    .select('event.id')
    .where('event.received_at', '<', before)
    .where('event.state', '<>', 'pending')
    .limit(limit)
    .execute()
  if (old.length === 0) return 0
  await tx
    .deleteFrom('inbound_bodies')
    .where(
      'event_id',
      'in',
      old.map((row) => row.id),
    )
    .execute()
  return old.length
}
