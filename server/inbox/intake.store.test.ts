import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Database } from '../platform/database/database.ts'
import { testDialects } from '../test/testkit/databases.ts'
import { openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { addEvents, type NewEvent } from './intake.store.ts'

interface World {
  bed: Testbed
  database: Database
}

for (const dialect of testDialects().filter((one) => one === 'postgresql')) {
  const it = suite<World>('adding events on postgresql')
  it.before.each(async (world) => {
    world.bed = await openTestbed(dialect)
    world.database = world.bed.platform.database
  })
  it.after.each(({ bed }) => bed.close())

  const eventOf = ({ bed }: World, deliveryId: string, body = '{}'): NewEvent => ({
    id: bed.platform.ids.next(),
    ...({ source: 'store', scope: 'a store', delivery_id: deliveryId, conflict_hash: '' } as const),
    ...({ body_hash: body, topic: null, encoding: 'utf8', body: Buffer.from(body) } as const),
    received_at: bed.clock.now(),
    triggered_at: null,
    row_digest: '',
  })
  const fresh = (world: World) => eventOf(world, randomUUID())
  /** The server's own count of deadlocks. */
  const deadlocks = async ({ database }: World) => {
    const { rows } = await sql<{ deadlocks: number }>`
      select deadlocks from pg_stat_database, pg_stat_clear_snapshot() where datname = current_database()`.execute(
      database.reader,
    )
    return rows[0]?.deadlocks
  }

  it('does not deadlock when two writes hold the same deliveries in different orders', async (world) => {
    for (let round = 0; round < 5; round += 1) {
      const deliveries = Array.from({ length: 500 }, () => randomUUID())
      const batches = [deliveries, deliveries.toReversed()].map((ids) => ids.map((id) => eventOf(world, id)))
      const added = await Promise.all(batches.map((events) => addEvents(world.database, events)))
      assert.is(new Set(added.flatMap((ids) => [...ids])).size, 500)
    }
    assert.equal(await deadlocks(world), 0)
  })

  it('fails on any other error, and keeps nothing', async (world) => {
    const source = 'unknown' as NewEvent['source']
    const failing = addEvents(world.database, [fresh(world), { ...fresh(world), source }])
    assert.match(String(await failing.catch((error: unknown) => error)), /inbound_events_source_check/)
    assert.equal(await world.database.reader.selectFrom('inbound_events').select('id').execute(), [])
  })

  it.run()
}
