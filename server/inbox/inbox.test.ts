import { hash, randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { eventsOf, type Marketplace, openFlagsOf, type Shop } from '../test/testkit/marketplace.ts'
import { outcomeOf } from '../test/testkit/people.ts'
import { assertMapped, pluck, pluckAll } from '../test/testkit/pluck.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import { eventBody, retryEvent } from './events.service.ts'
import { claimEvents, removeOldBodies } from './inbox.service.ts'
import { makeDue } from './inbox.store.ts'
import { addEvents, type NewEvent } from './intake.store.ts'
import { MAX_ATTEMPTS } from './retry.rule.ts'
import { countUnreadableOrders } from './set-aside.service.ts'

interface Context {
  market: Marketplace
  shop: Shop
}

for (const { it, dialect } of marketSuites<Context>('inbox')) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
  })

  const bodiesOf = ({ platform }: Marketplace) => rowsOf(platform, 'inbound_bodies', {}, 'event_id')
  const claim = ({ platform }: Marketplace, limit = 100) => claimEvents(platform, 'store', { limit })
  const ids = (events: readonly { delivery_id: string }[]) => events.map((event) => event.delivery_id)

  it('stores a delivery once, whenever it comes again', async ({ market, shop }) => {
    const first = await market.deliver(shop, '{}', { deliveryId: 'a' })
    const again = await market.deliver(shop, '{}', { deliveryId: 'a' })
    // All three go into one group commit.
    const together = await Promise.all(
      ['b', 'b', 'a'].map((deliveryId) => market.deliver(shop, '{}', { deliveryId })),
    )
    assert.equal([first, again, ...together], ['stored', 'known', 'stored', 'known', 'known'])
    assert.equal([(await eventsOf(market.platform)).length, (await bodiesOf(market)).length], [2, 2])
    const other = await market.addShop()
    assert.is(await market.deliver(other, '{}', { deliveryId: 'a' }), 'stored', 'another store')
    await market.verify()
  })

  it('keeps another body under a known id aside, and flags it', async ({ market, shop }) => {
    const send = (body: string) => market.deliver(shop, body, { deliveryId: 'a', topic: 'shop/update' })
    const receipts = await Promise.all(['one', 'two', 'one', 'two'].map(send))
    const later = [await send('three'), await send('one'), await send('two')]
    assert.equal(receipts, ['stored', 'conflict', 'known', 'known'])
    assert.equal(later, ['conflict', 'known', 'known'])
    await market.drainUntilIdle()
    const events = await eventsOf(market.platform)
    assertMapped(events, (event) => [event.state, event.conflict_hash !== ''], [
      ['ignored', false],
      ['set_aside', true],
      ['set_aside', true],
    ])
    assert.equal(await openFlagsOf(market.platform), [`event_body_conflict ${shop.storeId}:conflicting`])
    assert.equal(pluck(await bodiesOf(market), 'body'), ['one', 'two', 'three'])
    for (const { id } of events) assert.is(await outcomeOf(retryEvent(market.platform, id, null)), 'conflict')
    await market.verify()
  })

  it('returns every body byte for byte', async ({ market, shop }) => {
    const bodies = [
      Buffer.from('{"name":"Kurtā \\u0000 \\/ 🧵"}'),
      Buffer.from([0xff, 0xfe, 0x00, 0x41]),
      Buffer.from('nul\0nul'),
      Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
      Buffer.from([0xed, 0xa0, 0x80]),
      Buffer.alloc(0),
    ]
    for (const body of bodies) await market.deliver(shop, body)
    const claimed = await claim(market)
    const hashes = pluck(await eventsOf(market.platform), 'body_hash')
    for (const [index, body] of bodies.entries()) {
      const { id = '', text } = claimed[index] ?? {}
      assert.equal(await eventBody(market.platform, id), body)
      assert.equal([text, hashes[index]], [body.toString('utf8'), hash('sha256', body)])
    }
    assert.is(claimed.length, bodies.length)
  })

  it('gives events back whose bodies could not be read, for the next claim', async ({ market, shop }) => {
    for (const deliveryId of ['a', 'b']) await market.deliver(shop, '{}', { deliveryId })
    const { database } = market.platform
    let reads = 0
    const lost = Object.create(database, {
      // A claim looks for what is due, then reads the bodies.
      reader: {
        get() {
          reads += 1
          if (reads === 2) throw new Error('Connection terminated')
          return database.reader
        },
      },
    })
    const worker = { ...market, platform: Object.create(market.platform, { database: { value: lost } }) }
    const error = await claim(worker).catch((reason: Error) => reason)
    assert.match(String(error), 'Connection terminated')
    assert.ok((await eventsOf(market.platform)).every(({ lease_token }) => lease_token !== null))
    assert.equal(ids(await claim(worker)), ['a', 'b'])
    const events = await eventsOf(market.platform)
    assert.ok(events.every(({ attempts }) => attempts === 1))
    const retried = await outcomeOf(retryEvent(market.platform, events[0]?.id ?? '', null))
    assert.is(retried, 'conflict', 'held by a worker')
  })

  it('claims an event whose every attempt ended its process without its body', async ({ market, shop }) => {
    await market.deliver(shop, '{}')
    await market.platform.database.transaction((tx) =>
      tx.updateTable('inbound_events').set({ attempts: MAX_ATTEMPTS }).execute(),
    )
    assert.equal(pluckAll(await claim(market), 'text', 'attempts'), [[null, MAX_ATTEMPTS + 1]])
  })

  const evidenceOf = async ({ platform }: Marketplace) => {
    const rows = await rowsOf(platform, 'flags', { status: 'open' })
    return rows.map(({ evidence }) => JSON.parse(evidence))
  }

  it("counts a store's unreadable events in one flag, until the last retry", async ({ market, shop }) => {
    const { platform } = market
    const bodies = ['{"id": 1}', '{"id": 2, "created_at": 5}', '{', '[]', '{"id": 3}']
    for (let round = 0; round < 40; round += 1) {
      await Promise.all(bodies.map((body) => market.deliver(shop, body)))
      if (round % 10 === 0) await market.drainUntilIdle()
    }
    await market.drainUntilIdle()
    const [evidence, ...others] = await evidenceOf(market)
    assert.equal([others, evidence.events, evidence.latest_event_ids.length], [[], 200, 10])
    const counted = Object.values<number>(evidence.reasons).reduce((sum, count) => sum + count, 0)
    assert.equal([counted, evidence.reasons['malformed: not JSON']], [200, 40])
    await market.verify()
    const unreadableAt = async (time: number) => [
      ...(await countUnreadableOrders(platform.database.reader, [shop.storeId], time)),
    ]
    assert.equal(await unreadableAt(market.clock.now()), [[shop.storeId, 200]])
    for (const { id } of await eventsOf(platform)) await retryEvent(platform, id, null)
    assert.equal(await openFlagsOf(platform), [])
    assert.ok((await eventsOf(platform)).every(({ attempts }) => attempts === 0))
    await market.drainUntilIdle()
    assert.equal(await unreadableAt(market.clock.now() + 7 * DAY + MINUTE), [])
  })

  it('lists at most ten reasons', async ({ market, shop }) => {
    const long = (index: number) => `{"id": 1, "line_items": [${'{},'.repeat(index)}{}], "created_at": "x"}`
    for (let index = 0; index < 30; index += 1) await market.deliver(shop, long(index))
    await market.drainUntilIdle()
    const [evidence] = await evidenceOf(market)
    assert.ok(Object.keys(evidence.reasons).length <= 11)
  })

  it('removes raw bodies past their time, of finished events only', async ({ market, shop }) => {
    const { platform, clock } = market
    await market.deliver(shop, '{}', { deliveryId: 'old and done', topic: 'shop/update' })
    await market.drainUntilIdle()
    await market.deliver(shop, '{}', { deliveryId: 'old and pending' })
    clock.pass(90 * DAY)
    assert.is(await removeOldBodies(platform), 0)
    clock.pass(MINUTE)
    await market.deliver(shop, '{}', { deliveryId: 'new' })
    assert.is(await removeOldBodies(platform), 1)
    const left = new Set((await bodiesOf(market)).map((row) => row.event_id))
    const events = (await eventsOf(platform)).filter((event) => left.has(event.id))
    assert.equal(ids(events), ['old and pending', 'new'])
    const [done] = await eventsOf(platform)
    const again = platform.database.transaction((tx) => makeDue(tx, [done?.id ?? ''], clock.now()))
    assert.is(await again, 0, 'no event that a worker has settled since it was looked at')
    assert.is(await market.deliver(shop, '{}', { deliveryId: 'old and done' }), 'known')
    assert.is(await market.deliver(shop, '[]', { deliveryId: 'old and done' }), 'conflict')
  })

  if (dialect === 'postgresql') {
    const eventOf = ({ platform, clock }: Marketplace, deliveryId: string = randomUUID()): NewEvent => ({
      ...({ source: 'store', scope: 'a store', delivery_id: deliveryId, conflict_hash: '' } as const),
      ...({ body_hash: '', topic: null, encoding: 'utf8', body: Buffer.from('{}') } as const),
      ...{ id: platform.ids.next(), received_at: clock.now(), triggered_at: null, row_digest: '' },
    })

    it('does not deadlock when two writes hold the same deliveries in different orders', async ({
      market,
    }) => {
      const { database } = market.platform
      for (let round = 0; round < 5; round += 1) {
        const deliveries = Array.from({ length: 500 }, () => randomUUID())
        const batches = [deliveries, deliveries.toReversed()]
        const added = await Promise.all(
          batches.map((ids) =>
            addEvents(
              database,
              ids.map((id) => eventOf(market, id)),
            ),
          ),
        )
        assert.is(new Set(added.flatMap((ids) => [...ids])).size, 500)
      }
      // The server's own count.
      const { rows } = await sql`select deadlocks from pg_stat_database, pg_stat_clear_snapshot()
        where datname = current_database()`.execute(database.reader)
      assert.equal(rows, [{ deadlocks: 0 }])
    })

    it('fails on any other error, and keeps nothing', async ({ market }) => {
      const wrong = { ...eventOf(market), source: 'unknown' as NewEvent['source'] }
      const failing = addEvents(market.platform.database, [eventOf(market), wrong])
      assert.match(String(await failing.catch((error: unknown) => error)), /inbound_events_source_check/)
      assert.equal(await eventsOf(market.platform), [])
    })
  }

  it.run()
}
