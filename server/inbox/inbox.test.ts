import { createHash } from 'node:crypto'
import * as assert from 'uvu/assert'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { eventsOf, type Marketplace, openFlagsOf, type Shop } from '../test/testkit/marketplace.ts'
import { assertMapped, pluck } from '../test/testkit/pluck.ts'
import { columnsOf } from '../test/testkit/rows.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import { eventBody, retryEvent } from './events.service.ts'
import { claimEvents, removeOldBodies } from './inbox.service.ts'
import { countUnreadableOrders } from './set-aside.service.ts'

interface Context {
  market: Marketplace
  shop: Shop
}

for (const { it } of marketSuites<Context>('inbox')) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
  })

  const bodiesOf = ({ platform }: Marketplace) =>
    platform.database.reader.selectFrom('inbound_bodies').selectAll().orderBy('event_id').execute()
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
    assert.is((await eventsOf(market.platform)).length, 2)
    assert.is((await bodiesOf(market)).length, 2)
    assert.is(
      await market.deliver(await market.addShop(), '{}', { deliveryId: 'a' }),
      'stored',
      'another store',
    )
    await market.verify()
  })

  it('keeps another body under a known id aside, and flags it', async ({ market, shop }) => {
    const send = (body: string) => market.deliver(shop, body, { deliveryId: 'a', topic: 'shop/update' })
    assert.equal(await Promise.all(['one', 'two', 'one', 'two'].map(send)), [
      'stored',
      'conflict',
      'known',
      'known',
    ])
    assert.is(await send('three'), 'conflict')
    await market.drainUntilIdle()
    const events = await eventsOf(market.platform)
    assertMapped(events, (event) => [event.state, event.conflict_hash !== ''], [
      ['ignored', false],
      ['set_aside', true],
      ['set_aside', true],
    ])
    assert.equal(await openFlagsOf(market.platform), [`event_body_conflict ${shop.storeId}:conflicting`])
    assert.equal(pluck(await bodiesOf(market), 'body'), ['one', 'two', 'three'])
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
    assert.equal(
      await Promise.all(
        claimed.map(async ({ id }) => (await eventBody(market.platform, id))?.toString('hex')),
      ),
      bodies.map((body) => body.toString('hex')),
    )
    assert.equal(
      pluck(claimed, 'text'),
      bodies.map((body) => body.toString('utf8')),
    )
    const hashes = (await eventsOf(market.platform)).map((event) => event.body_hash)
    assert.equal(
      hashes,
      bodies.map((body) => createHash('sha256').update(body).digest('hex')),
    )
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
    assert.ok((await eventsOf(market.platform)).every(({ attempts }) => attempts === 1))
  })

  it('sets aside unretried what can never apply, ignores what it does not need', async ({ market, shop }) => {
    await market.deliver(shop, '{"id": }')
    await market.deliver(shop, Buffer.from([0xff, 0x00]))
    await market.deliver(shop, '{}', { topic: 'orders/fulfilled' })
    await market.drainUntilIdle()
    const events = await eventsOf(market.platform)
    assertMapped(events, (event) => [event.state, event.attempts, event.reason], [
      ['set_aside', 1, 'malformed: not JSON'],
      ['set_aside', 1, 'malformed: not JSON'],
      ['ignored', 1, 'nothing to do for topic orders/fulfilled'],
    ])
    assert.equal(await openFlagsOf(market.platform), [`event_set_aside ${shop.storeId}:unreadable`])
    await market.verify()
  })

  const evidenceOf = async ({ platform }: Marketplace) => {
    const rows = await columnsOf(platform, 'flags', ['evidence'], { status: 'open' })
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
    assert.is(others.length, 0)
    assert.is(evidence.events, 200)
    assert.is(evidence.latest_event_ids.length, 10)
    const counted = Object.values<number>(evidence.reasons).reduce((sum, count) => sum + count, 0)
    assert.equal([counted, evidence.reasons['malformed: not JSON']], [200, 40])
    await market.verify()
    const unreadable = await countUnreadableOrders(
      platform.database.reader,
      [shop.storeId],
      market.clock.now(),
    )
    assert.equal([...unreadable], [[shop.storeId, 200]])
    for (const { id } of await eventsOf(platform)) await retryEvent(platform, id, null)
    assert.equal(await openFlagsOf(platform), [])
    const week = 7 * DAY + MINUTE
    await market.drainUntilIdle()
    const later = await countUnreadableOrders(
      platform.database.reader,
      [shop.storeId],
      market.clock.now() + week,
    )
    assert.equal([...later], [])
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
    const events = await eventsOf(platform)
    assert.equal(
      events.filter((event) => left.has(event.id)).map((event) => event.delivery_id),
      ['old and pending', 'new'],
    )
    assert.is(await market.deliver(shop, '{}', { deliveryId: 'old and done' }), 'known')
    assert.is(await market.deliver(shop, '[]', { deliveryId: 'old and done' }), 'conflict')
  })

  it.run()
}
