import { type RawBuilder, sql } from 'kysely'
import { dialectOf, type Queries, type Tx } from '../platform/database.ts'
import { among } from '../platform/row-set.ts'
import type { EventSource } from './event-words.ts'
import type { EventRow } from './inbox.store.ts'
import type { Lane } from './lanes.rule.ts'
import { readBodies } from './upcoming-events.store.ts'

export interface Lease {
  token: string
  until: number
}

/** What a worker needs of an event that it takes up. */
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

type BareRow = Pick<EventRow, (typeof CLAIMED)[number]>

export interface ClaimedRow extends BareRow {
  /** `null` when the retention time has taken it; `undefined` where it was not asked for. */
  body: string | null | undefined
  encoding: 'utf8' | 'base64' | null
}

/** Any two numbers that no other part of the service takes as its advisory lock, or as the first half of one. */
const CLAIM_LOCK = 7_041_948
const SCOPE_LOCK = 7_041_949

export interface Claim {
  source: EventSource
  now: number
  limit: number
  lease: Lease
  /** PostgreSQL only: no scopes but this lane's. */
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

/** Events of whose bodies somebody has read already all that is in them, by id. */
export type Read = Pick<ReadonlySet<string>, 'has' | 'size'>

const NONE_READ: Read = new Set<string>()

/** The events that `claimDueEvents` would lease on SQLite, without leasing them; the bodies of those in `read` are left where they are. */
export async function readDueEvents(
  db: Queries,
  claim: Claim,
  read: Read = NONE_READ,
): Promise<ClaimedRow[]> {
  if (read.size === 0) return dueEventsStatement(db, claim).execute()
  return withBodies(db, await bareDueEventsStatement(db, claim).execute(), read)
}

export function dueEventsStatement(db: Queries, claim: Claim) {
  return bareDueEventsStatement(db, claim)
    .leftJoin('inbound_bodies as body', 'body.event_id', 'event.id')
    .select(['body.body', 'body.encoding'])
}

export function bareDueEventsStatement(db: Queries, claim: Claim) {
  return dueEvents(db, claim).select(CLAIMED.map((column) => `event.${column}` as const))
}

async function withBodies(db: Queries, rows: readonly BareRow[], read: Read): Promise<ClaimedRow[]> {
  const missing = rows.flatMap(({ id }) => (read.has(id) ? [] : [id]))
  const found = missing.length === 0 ? [] : await readBodies(db, missing)
  const bodies = new Map(found.map((body) => [body.event_id, body]))
  return rows.map((row) => {
    const body = bodies.get(row.id)
    const left = read.has(row.id) ? undefined : null
    return { ...row, body: body?.body ?? left, encoding: body?.encoding ?? null }
  })
}

/** Those of these scopes of which somebody holds events. */
export async function heldScopes(db: Queries, when: When, scopes: readonly string[]): Promise<Set<string>> {
  const rows =
    dialectOf(db) === 'sqlite'
      ? await leasedEvents(db, when).select('held.scope').execute()
      : (
          await sql<{ scope: string }>`
            select given.scope from unnest(cast(${scopes} as text[])) as given (scope)
            where ${isHeld(db, when, sql.ref('given.scope'))}`.execute(db)
        ).rows
  return new Set(rows.map(({ scope }) => scope))
}

type When = Pick<Claim, 'now' | 'lease'>

/** Whoever settles an event ends its lease, so nothing needs to be asked of its state. */
function leasedEvents(db: Queries, { now, lease }: When) {
  return (
    db
      .selectFrom('inbound_events as held')
      .where('held.lease_token', 'is not', null)
      .where('held.lease_until', '>', now)
      // One that ends later than any given now was given before the clock was put back.
      .where('held.lease_until', '<=', lease.until)
  )
}

/** PostgreSQL only. Asked of each scope by itself (`offset`): all at once it may read the whole table for the few that are leased. */
function isHeld(db: Queries, when: When, scope: RawBuilder<unknown>): RawBuilder<boolean> {
  const held = leasedEvents(db, when).select('held.id').where(sql<boolean>`held.scope = ${scope}`).offset(0)
  return sql<boolean>`exists (${held})`
}

function dueEvents(db: Queries, claim: Claim) {
  const free =
    dialectOf(db) === 'sqlite'
      ? sql<boolean>`event.scope not in (${leasedEvents(db, claim).select('held.scope')})`
      : sql<boolean>`not ${isHeld(db, claim, sql.ref('event.scope'))}`
  return db
    .selectFrom('inbound_events as event')
    .where('event.state', '=', 'pending')
    .where('event.source', '=', claim.source)
    .where('event.next_attempt_at', '<=', claim.now)
    .where(free)
    .orderBy('event.next_attempt_at')
    .orderBy('event.id')
    .limit(claim.limit)
}

/** PostgreSQL looks no further than this many batches: all that waits there may be another lane's, or another worker's. */
const WINDOW = 4

function dueWindow(db: Queries, claim: Claim) {
  return dueEvents(db, { ...claim, limit: WINDOW * claim.limit })
    .select(CLAIMED.map((column) => `event.${column}` as const))
    .select('event.next_attempt_at')
    .as('event')
}

/**
 * PostgreSQL only: the events that `claimDueEvents` would lease, held by nothing but locks on their scopes, which end with the
 * transaction. Scopes that somebody else has locked are left to whoever has.
 */
export async function holdDueEvents(tx: Tx, claim: Claim, read: Read = NONE_READ): Promise<ClaimedRow[]> {
  const scopes = await holdScopes(tx, claim)
  if (scopes.length === 0) return []
  if (read.size === 0) return (await heldEventsStatement(tx, claim, scopes).execute(tx)).rows
  return withBodies(tx, await bareHeldEventsStatement(tx, claim, scopes).execute(), read)
}

/** In a statement of its own: what the next one sees must be what those who had the locks before have written. */
async function holdScopes(tx: Tx, claim: Claim): Promise<string[]> {
  const { rows } = await holdScopesStatement(tx, claim).execute(tx)
  return rows.map(({ scope }) => scope)
}

/**
 * One event after the other is asked whether its scope is free, until they make a batch, so that no more scopes are locked than
 * there are in it. The `offset` keeps the locks from being asked for before the lane is known, or the order.
 */
export function holdScopesStatement(db: Queries, claim: Claim) {
  const { lane, limit } = claim
  const waiting = db
    .selectFrom(dueWindow(db, claim))
    .select('event.scope')
    .$if(lane !== null, (query) => query.where(inLane(lane as Lane)))
    .offset(0)
  return sql<{ scope: string }>`
    select distinct free.scope from (
      select waiting.scope from (${waiting}) as waiting
      where pg_try_advisory_xact_lock(${sql.lit(SCOPE_LOCK)}, hashtext(waiting.scope)) limit ${limit}
    ) as free`
}

const inLane = (lane: Lane) => sql<boolean>`event.scope ${among('postgresql', 'text', lane)}`

/** PostgreSQL only: how many events of each scope are among those that a batch is looked for in. */
export async function countWaiting(db: Queries, claim: Claim): Promise<{ scope: string; events: number }[]> {
  return db
    .selectFrom(dueWindow(db, claim))
    .select((select) => ['event.scope', select.fn.countAll<number>().as('events')])
    .groupBy('event.scope')
    .orderBy('event.scope')
    .execute()
}

/** The `offset` leaves the planner, who may know nothing of the tables yet, no other way to the bodies than by their keys. */
export function heldEventsStatement(db: Queries, claim: Claim, scopes: readonly string[]) {
  return sql<ClaimedRow>`
    select ${columnsOf('event')}, found.body, found.encoding
    from (${bareHeldEventsStatement(db, claim, scopes)}) as event left join lateral (
      select body.body, body.encoding from inbound_bodies as body where body.event_id = event.id offset 0
    ) as found on true
    order by event.next_attempt_at, event.id`
}

export function bareHeldEventsStatement(db: Queries, claim: Claim, scopes: readonly string[]) {
  return db
    .selectFrom(dueWindow(db, claim))
    .selectAll()
    .where(sql<boolean>`event.scope ${among('postgresql', 'text', scopes)}`)
    .orderBy('event.next_attempt_at')
    .orderBy('event.id')
    .limit(claim.limit)
}

/**
 * Reads and leases in one statement. The array and the `offset` leave the planner, who may know nothing of the tables yet, no
 * other way than by their keys. Whoever held an event until its lease ran out may have settled it since it was read.
 */
async function claimInOne(tx: Tx, claim: Claim): Promise<ClaimedRow[]> {
  // Those before `holdDueEvents` know no other lock than this one.
  await sql`select pg_advisory_xact_lock(${CLAIM_LOCK})`.execute(tx)
  const scopes = await holdScopes(tx, claim)
  if (scopes.length === 0) return []
  const { now, lease, limit } = claim
  const due = tx
    .selectFrom(dueWindow(tx, claim))
    .select('event.id')
    .where(sql<boolean>`event.scope ${among('postgresql', 'text', scopes)}`)
    .orderBy('event.next_attempt_at')
    .orderBy('event.id')
    .limit(limit)
  const found = await sql<ClaimedRow>`
    with leased as (
      update inbound_events as event set lease_token = ${lease.token}, lease_until = ${lease.until}
      where event.id = any(array(${due}))
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
