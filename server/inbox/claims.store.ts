import { type RawBuilder, sql } from 'kysely'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { EventSource } from './event-words.ts'
import type { EventRow } from './inbox.store.ts'
import type { Lane } from './lanes.rule.ts'
import { leadingUpToBytes } from './upcoming-events.store.ts'

export interface Lease {
  token: string
  /** Epoch ms. */
  until: number
}

const CLAIMED = [
  'id',
  'source',
  'scope',
  'delivery_id',
  'conflict_hash',
  'topic',
  'received_at',
  'triggered_at',
  'attempts',
] as const

/** A claimed event. `attempts` includes the one that the claim begins. */
export type ClaimedRow = Pick<EventRow, (typeof CLAIMED)[number]>

/** The most by which the clocks of two workers differ, ms. A lease that ends later was given before a clock was put back. */
const CLOCK_TOLERANCE_MS = 5 * 60_000

/** Advisory lock of this service on PostgreSQL: one claim at a time. */
const CLAIM_LOCK = 7_041_948

export interface Claim {
  source: EventSource
  now: number
  limit: number
  /** The most bytes of bodies; a single event may be larger. */
  maxBytes: number
  lease: Lease
  /** PostgreSQL only: these scopes only. */
  lane: Lane | null
}

/**
 * Leases due events of a source, oldest first, and counts an attempt for each. Skips scopes whose events another worker holds, so
 * that the order within a scope is kept. Once a lease has run out, a claim of one event of its scope ends it for all events of that
 * scope: its worker can settle none of them, also where it only was slow, or where its clock is behind.
 *
 * The attempt is on disk before a body is read, so an event that ends the process runs out of attempts like any other. An event that
 * was tried before is claimed alone: only the event that ends the process loses attempts, not the batch it was in.
 */
export async function claimDueEvents(tx: Tx, claim: Claim): Promise<ClaimedRow[]> {
  const dialect = dialectOf(tx)
  // On SQLite the transaction holds the write lock already.
  if (dialect === 'postgresql') await beginClaim(tx)
  const due = untriedOrOne(await dueEventsStatement(tx, claim).execute())
  if (due.length === 0) return []
  const ids = await leadingUpToBytes(
    tx,
    due.map(({ id }) => id),
    claim.maxBytes,
  )
  const { rows } = await leaseStatement(tx, claim, ids).execute(tx)
  const leased = new Map(rows.map(({ id, attempts }) => [id, attempts]))
  const scopes = new Set(due.flatMap(({ id, scope }) => (leased.has(id) ? [scope] : [])))
  if (scopes.size > 0) await endOtherLeasesStatement(tx, claim, [...scopes]).execute(tx)
  return due.flatMap((row) => {
    const attempts = leased.get(row.id)
    return attempts === undefined ? [] : [{ ...row, attempts }]
  })
}

/**
 * PostgreSQL only. Waits for the claim of another worker to end, and makes the planner take indexes: it may not know yet how many
 * events wait and how few are leased.
 */
async function beginClaim(tx: Tx): Promise<void> {
  await sql`select pg_advisory_xact_lock(${CLAIM_LOCK}), set_config('enable_seqscan', 'off', true)`.execute(
    tx,
  )
}

/** The leading events that were not tried yet; the first event alone if it was. */
function untriedOrOne(due: readonly ClaimedRow[]): readonly ClaimedRow[] {
  const tried = due.findIndex(({ attempts }) => attempts > 0)
  return tried === -1 ? due : due.slice(0, Math.max(1, tried))
}

/** Looks the events up by their ids. A worker whose lease ran out may have settled one since it was read. */
export function leaseStatement(db: Queries, { lease, now }: Claim, ids: readonly string[]) {
  const dialect = dialectOf(db)
  // Written so that no planner takes the index of everything that is pending.
  const pending = dialect === 'sqlite' ? sql`+state = 'pending'` : sql`coalesce(state, '') = 'pending'`
  // Of an array that a query makes PostgreSQL expects few elements, and so looks each of them up.
  const given =
    dialect === 'sqlite'
      ? sql`id ${inList(dialect, 'uuid', ids)}`
      : sql`id = any(array(select unnest(cast(${ids} as uuid[]))))`
  return sql<{ id: string; attempts: number }>`
    update inbound_events set lease_token = ${lease.token}, lease_until = ${lease.until}, attempts = attempts + 1
    where ${given} and ${pending} and (lease_until <= ${now} or lease_until > ${lease.until + CLOCK_TOLERANCE_MS})
    returning id, attempts`
}

/** Ends the leases that ran out on other events of these scopes. */
export function endOtherLeasesStatement(db: Queries, { lease, source }: Claim, scopes: readonly string[]) {
  const dialect = dialectOf(db)
  const given = dialect === 'sqlite' ? inList(dialect, 'text', scopes) : sql`= any(cast(${scopes} as text[]))`
  return sql`
    update inbound_events set lease_token = null, lease_until = 0
    where lease_token is not null and lease_token <> ${lease.token} and source = ${source} and scope ${given}`
}

/** The events that `claimDueEvents` chooses from. */
export function dueEventsStatement(db: Queries, claim: Claim) {
  if (dialectOf(db) === 'sqlite')
    return dueEvents(db, claim).select(CLAIMED.map((column) => `event.${column}` as const))
  return db
    .selectFrom(dueWindow(db, claim))
    .select(CLAIMED.map((column) => `event.${column}` as const))
    .$if(claim.lane !== null, (query) => query.where(inLane(claim.lane as Lane)))
    .orderBy('event.next_attempt_at')
    .orderBy('event.id')
    .limit(claim.limit)
}

type When = Pick<Claim, 'now' | 'lease'>

/** Settling an event ends its lease, so its state does not matter here. */
function leasedEvents(db: Queries, { now, lease }: When) {
  return db
    .selectFrom('inbound_events as held')
    .where('held.lease_token', 'is not', null)
    .where('held.lease_until', '>', now)
    .where('held.lease_until', '<=', lease.until + CLOCK_TOLERANCE_MS)
}

/** Whether no worker holds the scope of an event. On PostgreSQL the held scopes are collected once, not for each event. */
function isFree(db: Queries, when: When): RawBuilder<boolean> {
  const held = leasedEvents(db, when).select('held.scope').distinct()
  if (dialectOf(db) === 'sqlite') return sql`event.scope not in (${held})`
  return sql`not exists (
    select 1 from unnest(array(${held})) as taken (scope) where taken.scope = event.scope offset 0)`
}

function dueEvents(db: Queries, claim: Claim) {
  return db
    .selectFrom('inbound_events as event')
    .where('event.state', '=', 'pending')
    .where('event.source', '=', claim.source)
    .where('event.next_attempt_at', '<=', claim.now)
    .where(isFree(db, claim))
    .orderBy('event.next_attempt_at')
    .orderBy('event.id')
    .limit(claim.limit)
}

/** PostgreSQL looks through this many batches for events of its lane. */
const WINDOW = 4

function dueWindow(db: Queries, claim: Claim) {
  return dueEvents(db, { ...claim, limit: WINDOW * claim.limit })
    .select(CLAIMED.map((column) => `event.${column}` as const))
    .select('event.next_attempt_at')
    .as('event')
}

const inLane = (lane: Lane) => sql<boolean>`event.scope ${inList('postgresql', 'text', lane)}`

/** PostgreSQL only: the number of events per scope among those that a claim chooses from. */
export async function countWaiting(db: Queries, claim: Claim): Promise<{ scope: string; events: number }[]> {
  return db
    .selectFrom(dueWindow(db, claim))
    .select((select) => ['event.scope', select.fn.countAll<number>().as('events')])
    .groupBy('event.scope')
    .orderBy('event.scope')
    .execute()
}
