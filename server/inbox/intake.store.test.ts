import { randomUUID } from 'node:crypto'
import { type CompiledQuery, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Database } from '../platform/database.ts'
import { testDialects } from '../proof/testbed/databases.ts'
import { openTestbed, type Testbed } from '../proof/testbed/testbed.ts'
import { addEvents, type NewEvent } from './intake.store.ts'

/** How each write was made, in order. */
type Write = 'as new' | 'the missing'

interface World {
  bed: Testbed
  database: Database
  writes: Write[]
}

for (const dialect of testDialects().filter((one) => one === 'postgresql')) {
  const it = suite<World>('adding events on postgresql')
  it.before.each(async (world) => {
    world.bed = await openTestbed(dialect)
    const { database } = world.bed.platform
    world.writes = []
    world.database = {
      ...database,
      writeAtOnce<Row>(...statements: CompiledQuery[]) {
        world.writes.push(statements[0]?.sql.includes('on conflict') ? 'the missing' : 'as new')
        return database.writeAtOnce<Row>(...statements)
      },
    }
  })
  it.after.each(({ bed }) => bed.close())

  const eventOf = ({ bed }: World, deliveryId: string, body = '{}'): NewEvent => ({
    id: bed.platform.ids.next(),
    ...({ source: 'store', scope: 'a store', delivery_id: deliveryId, conflict_hash: '' } as const),
    ...({ body_hash: body, topic: null, encoding: 'utf8', body: Buffer.from(body) } as const),
    received_at: bed.clock.now(),
    triggered_at: null,
  })
  const fresh = (world: World) => eventOf(world, randomUUID())
  /** What is kept, as body by delivery. */
  const kept = async ({ database }: World) => {
    const rows = await database.reader
      .selectFrom('inbound_events as event')
      .innerJoin('inbound_bodies as body', 'body.event_id', 'event.id')
      .select(['event.id', 'event.delivery_id', 'body.body'])
      .orderBy('event.id')
      .execute()
    return rows.map(({ delivery_id, body }) => [delivery_id, body])
  }

  /** How many circles of waiting the server had to break, by its own count. */
  const deadlocks = async ({ database }: World) => {
    const { rows } = await sql<{ deadlocks: number }>`
      select deadlocks from pg_stat_database, pg_stat_clear_snapshot() where datname = current_database()`.execute(
      database.reader,
    )
    return rows[0]?.deadlocks
  }

  it('writes events that are all new without asking for any', async (world) => {
    const events = [eventOf(world, 'a', '{"ä":"€"}'), eventOf(world, 'b', ''), eventOf(world, 'c', '["c"]')]
    assert.equal(await addEvents(world.database, events), new Set(events.map(({ id }) => id)))
    assert.equal(world.writes, ['as new'])
    assert.equal(await kept(world), [
      ['a', '{"ä":"€"}'],
      ['b', ''],
      ['c', '["c"]'],
    ])
  })

  it('keeps the new ones of a batch in which one was there already', async (world) => {
    await addEvents(world.database, [eventOf(world, 'a', 'first')])
    const [again, other] = [eventOf(world, 'a', 'second'), eventOf(world, 'b', 'other')]
    assert.equal(await addEvents(world.database, [again, other]), new Set([other.id]))
    assert.equal(world.writes, ['as new', 'as new', 'the missing'])
    assert.equal(await kept(world), [
      ['a', 'first'],
      ['b', 'other'],
    ])
  })

  it('keeps the first of two in one batch', async (world) => {
    const [first, second] = [eventOf(world, 'a', 'first'), eventOf(world, 'a', 'second')]
    assert.equal(await addEvents(world.database, [first, second]), new Set([first.id]))
    assert.equal(await kept(world), [['a', 'first']])
  })

  it('has two writes of the same deliveries, in whatever order, never wait for each other in a circle', async (world) => {
    for (let round = 0; round < 5; round += 1) {
      const deliveries = Array.from({ length: 500 }, () => randomUUID())
      const batches = [deliveries, deliveries.toReversed()].map((ids) => ids.map((id) => eventOf(world, id)))
      const added = await Promise.all(batches.map((events) => addEvents(world.database, events)))
      assert.is(new Set(added.flatMap((ids) => [...ids])).size, 500)
    }
    assert.equal(await deadlocks(world), 0)
  })

  it('asks for a while after a repeated one, and then no more', async (world) => {
    const known = fresh(world)
    await addEvents(world.database, [known])
    await addEvents(world.database, [{ ...known, id: world.bed.platform.ids.next() }])
    world.writes.length = 0
    for (let batch = 0; batch < 33; batch += 1) await addEvents(world.database, [fresh(world)])
    assert.equal(world.writes, [...Array(32).fill('the missing'), 'as new'])
  })

  it('goes on asking as long as some are repeated', async (world) => {
    const known = fresh(world)
    const repeat = () => addEvents(world.database, [{ ...known, id: world.bed.platform.ids.next() }])
    await addEvents(world.database, [known])
    await repeat()
    world.writes.length = 0
    for (let batch = 0; batch < 50; batch += 1) {
      if (batch % 20 === 0) assert.equal(await repeat(), new Set())
      else await addEvents(world.database, [fresh(world)])
    }
    assert.equal(world.writes, Array(50).fill('the missing'))
  })

  it('fails with what is no repetition, and keeps nothing', async (world) => {
    const source = 'nobody' as NewEvent['source']
    const failing = addEvents(world.database, [fresh(world), { ...fresh(world), source }])
    assert.match(String(await failing.catch((error: unknown) => error)), /inbound_events_source_check/)
    assert.equal(world.writes, ['as new'])
    assert.equal(await kept(world), [])
  })

  it.run()
}
