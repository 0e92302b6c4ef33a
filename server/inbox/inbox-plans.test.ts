import { type CompiledQuery, sql } from 'kysely'
import * as assert from 'uvu/assert'
import type { Claim } from '../platform/queue/lease-queue.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { stepsOf } from '../test/testkit/statements.ts'
import type { Testbed } from '../test/testkit/testbed.ts'
import {
  appliedEventsStatement,
  bodiesStatement,
  bodySizesStatement,
  EVENT_QUEUE,
  type EventRow,
  fromSource,
  type Settlement,
  settleStatement,
} from './inbox.store.ts'
import { upcomingEvents } from './upcoming-events.service.ts'

const EVENTS = 20_000
const BATCH = 500
const SCOPES = ['a store', 'another store', 'a third']

/** The statements of a claim, in which PostgreSQL does not read whole tables. */
const OF_CLAIM = ['due', 'sizes', 'lease', 'end']

interface World {
  bed: Testbed
  claim: Claim<EventRow>
  settlements: Settlement[]
}

for (const { it, dialect } of marketSuites<World>('plans of claiming and settling events', {
  shared: true,
})) {
  it.before(async (world) => {
    const now = world.bed.clock.now()
    const lease = { token: '', until: now + 15_000 }
    world.claim = { now, limit: BATCH, lease, only: fromSource('store') }
    world.settlements = await fill(world.bed)
  })

  /** Each statement that a batch asks of the inbox, by name. */
  const statementsOf = ({ bed, claim, settlements }: World): Record<string, CompiledQuery> => {
    const { reader } = bed.platform.database
    const settle = settleStatement(reader, settlements).compile(reader)
    const ids = settlements.map(({ row_id }) => row_id)
    const bodies = bodiesStatement(reader, ids).compile(reader)
    const upcoming = upcomingEvents(reader, 'store', claim.now, 4 * BATCH).compile()
    const sizes = bodySizesStatement(reader, ids).compile(reader)
    const lease = EVENT_QUEUE.leaseStatement(reader, claim, ids).compile(reader)
    const due = EVENT_QUEUE.dueStatement(claim).compile(reader)
    const end = EVENT_QUEUE.endOtherLeasesStatement(reader, claim, SCOPES)?.compile(reader)
    assert.ok(end)
    const orders = ids.map((order_id) => ({ store_id: 'a store', order_id }))
    const applied = appliedEventsStatement(reader, orders, 'ignored').compile(reader)
    return { due, sizes, lease, end, settle, bodies, upcoming, applied }
  }
  /** The indexes by which events are read; reading them one after the other counts as `all of them`. */
  const indexesOf = async ({ bed }: World, name: string, statement: CompiledQuery): Promise<string[]> => {
    const { database } = bed.platform
    const steps = await database.transaction(async (tx) => {
      if (dialect === 'postgresql' && OF_CLAIM.includes(name))
        await sql`set local enable_seqscan = off`.execute(tx)
      return stepsOf(database, tx, statement)
    })
    return [...new Set(steps.flatMap(indexOfStep))].sort()
  }

  const expected = {
    due: ['inbound_events_leased', 'inbound_events_pending'],
    sizes: ['inbound_bodies_pkey'],
    lease: ['inbound_events_pkey'],
    end: ['inbound_events_leased'],
    settle: ['inbound_events_pkey'],
    bodies: ['inbound_bodies_pkey'],
    upcoming: ['inbound_events_pending'],
    applied: ['inbound_events_order_id'],
  }

  it('goes by what falls due, and by ids, whatever is known of the tables', async (world) => {
    const { writer } = world.bed.testDatabase.database
    for (const [known, how] of [
      ['nothing', sql`select 1`],
      ['how much waits', sql`analyze`],
      ['how much waited', sql`update inbound_events set state = 'done'`],
      ['that nothing waits', sql`analyze`],
    ] as const) {
      await how.execute(writer)
      const found: Record<string, string[]> = {}
      for (const [name, statement] of Object.entries(statementsOf(world)))
        found[name] = await indexesOf(world, name, statement)
      assert.equal(found, expected, `known: ${known}`)
    }
  })

  it.run()
}

async function fill({ platform, clock }: Testbed): Promise<Settlement[]> {
  const now = clock.now()
  const ids = Array.from({ length: EVENTS }, () => platform.ids.next())
  await platform.database.transaction(async (tx) => {
    for (let at = 0; at < EVENTS; at += BATCH) {
      const rows = ids.slice(at, at + BATCH).map((id, index) => ({
        ...{ id, source: 'store' as const, scope: SCOPES[index % SCOPES.length] ?? '', delivery_id: id },
        ...{ conflict_hash: '', body_hash: '', topic: null, received_at: now, state: 'pending' as const },
        ...{ attempts: 0, next_attempt_at: now, lease_token: null, lease_until: 0, triggered_at: null },
        ...{ reason: null, reason_code: null, result: null, finished_at: null, row_digest: '' },
      }))
      await tx.insertInto('inbound_events').values(rows).execute()
      const bodies = rows.map(({ id }) => ({ event_id: id, encoding: 'utf8' as const, body: '{}' }))
      await tx.insertInto('inbound_bodies').values(bodies).execute()
    }
  })
  return ids.slice(0, BATCH).map((row_id) => ({
    ...{ row_id, token: 'a lease', state: 'done', reason: null, reason_code: null, result: '{}' },
    ...{ order_id: null, order_name: null },
    ...{ attempts: 1, next_attempt_at: now, finished_at: now },
  }))
}

/** By what a step of a plan reads events or bodies. */
function indexOfStep(step: string): string[] {
  if (/^SCAN (event|held|body|inbound_events)\b(?!.*USING)|Seq Scan on inbound_/.test(step))
    return ['all of them']
  const own = /sqlite_autoindex_inbound_(events|bodies)_1/.exec(step)
  if (own) return [`inbound_${own[1]}_pkey`]
  return [/inbound_(?:events|bodies)_[a-z_]+/.exec(step)?.[0] ?? ''].filter((index) => index !== '')
}
