import { setImmediate as nextTurn } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { type ClaimedEvent, claimEvents, releaseEvents } from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { eventsOf, type Marketplace, type Shop } from '../test/testkit/marketplace.ts'
import { assertNone } from '../test/testkit/pluck.ts'
import { drainStrictly } from '../test/testkit/strict-drain.ts'
import { applyStoreEvents } from './apply-store-events.ts'
import { createOrderReader, type OrderReader } from './order-reader.ts'
import { isToBeRead, type ReadOrders, readOrder } from './read-order.ts'

interface Context {
  market: Marketplace
  shop: Shop
}

const BATCH = 4

/** Filling the usual 256 MB was seen to take ten seconds with nothing else running: much of a file's two minutes beside others. */
const LITTLE_ROOM = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 }

/** Code that a thread runs instead of reading. */
const inline = (code: string) => new URL(`data:text/javascript,${encodeURIComponent(code)}`)

for (const { it } of marketSuites<Context>('reading orders ahead')) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
  })

  const sell = async (market: Marketplace, shop: Shop, orders: number) => {
    const link = await market.addLink(shop, await market.addCreator())
    for (let sold = 0; sold < orders; sold += 1) await market.order(shop, link, 100_000)
  }
  /** Claims what is due and gives it back, with the bodies of what is not in `read`. */
  const takeUp = async (platform: Platform, read?: ReadOrders): Promise<ClaimedEvent[]> => {
    const events = await claimEvents(platform, 'store', { limit: 100, read })
    await releaseEvents(platform, events)
    return events
  }
  const drain = ({ platform }: Marketplace, reader: OrderReader) =>
    drainStrictly(platform, 'store', BATCH, applyStoreEvents, reader)
  /** Lets the thread work until it has read so many. */
  const untilRead = (reader: OrderReader, many: number): Promise<ReadOrders> =>
    eventually(
      () => reader.read(),
      ({ size }) => size >= many,
    )
  /** As a worker does that has much to do: a thread that no one asks ends, also one that has not come to reading yet. */
  const askUntilRead = (reader: OrderReader, many: number): Promise<ReadOrders> =>
    eventually(
      () => {
        reader.readOn([])
        return reader.read()
      },
      ({ size }) => size >= many,
    )

  it('finds in each body what its worker would, and leaves the worker the rest', async ({ market, shop }) => {
    const { platform } = market
    await sell(market, shop, 3)
    await market.deliver(shop, '{"id": 1}', { deliveryId: 'malformed' })
    await market.deliver(shop, Buffer.from([0x7b, 0xff, 0x00]), { deliveryId: 'no text' })
    await market.deliver(shop, '{"id": 2}', { deliveryId: 'malformed' })
    await market.deliver(shop, '{}', { topic: 'orders/fulfilled' })
    const claimed = await takeUp(platform)
    assert.is(claimed.length, 7)
    const reader = createOrderReader(platform)
    reader.readOn(claimed.slice(0, 1))
    const read = await untilRead(reader, 4)
    await reader.close()
    const wanted = claimed.slice(1).flatMap((event): [string, unknown][] => {
      if (!isToBeRead(event)) return []
      return [[event.id, readOrder(event.text ?? '', event.topic, platform.config)]]
    })
    assert.equal([...read].map(([id, { order }]) => [id, order]).sort(), wanted.sort())
    assert.is([...read.values()].filter(({ order }) => order && 'malformed' in order).length, 2)

    const second = claimed[1]?.id ?? ''
    const some: ReadOrders = new Map([...read].filter(([id]) => id === second))
    const [asked, left] = await takeUp(platform, some)
    assert.equal([typeof asked?.text, left?.text], ['string', null])
    const partly: OrderReader = { ...reader, read: () => some, readOn() {} }
    assert.is(await drain(market, partly), BATCH)
    const states = (await eventsOf(platform)).slice(0, BATCH).map(({ state }) => state)
    assert.equal(states, ['done', 'done', 'done', 'set_aside'])
    await market.verify()
  })

  it('spares the worker the bodies; asks for none behind a full batch again', async ({ market, shop }) => {
    await sell(market, shop, 3 * BATCH)
    const reader = createOrderReader(market.platform)
    assert.is(await drain(market, reader), BATCH)
    await untilRead(reader, 2 * BATCH)
    // No one can read them.
    await market.platform.database.transaction((tx) => tx.deleteFrom('inbound_bodies').execute())
    assert.equal([await drain(market, reader), await drain(market, reader)], [BATCH, BATCH])
    assert.is(reader.read().size, 0)
    await reader.close()
    assertNone(await eventsOf(market.platform), ({ state }) => state !== 'done')
  })

  it('begins no thread for a batch that is not full', async ({ market, shop }) => {
    await sell(market, shop, BATCH - 1)
    const asked: number[] = []
    const reader: OrderReader = {
      read: () => new Map(),
      readOn: (taken) => asked.push(taken.length),
      close: async () => {},
    }
    await drain(market, reader)
    await sell(market, shop, BATCH)
    await drain(market, reader)
    assert.equal(asked, [BATCH])
  })

  it('goes on without a failed thread, says so once, and retries later', async ({ market, shop }) => {
    const grows = 'const all = []; for (;;) all.push([...Array(1e5).keys()])'
    for (const code of ['throw new Error("broken")', grows]) {
      await sell(market, shop, 2 * BATCH)
      const warned = Promise.withResolvers<void>()
      let warnings = 0
      const warn = () => {
        warnings += 1
        warned.resolve()
      }
      const log = Object.assign(Object.create(market.platform.log), { warn })
      const platform: Platform = { ...market.platform, log }
      let begun = 0
      const count = () => {
        begun += 1
      }
      process.on('worker', count)
      const reader = createOrderReader(platform, { thread: inline(code), room: LITTLE_ROOM })
      assert.is(await drain(market, reader), BATCH)
      // The reader's thread keeps no process alive.
      const alive = setInterval(() => {}, 1000)
      await warned.promise
      clearInterval(alive)
      assert.is(await drain(market, reader), BATCH)
      await nextTurn()
      await reader.close()
      process.off('worker', count)
      assert.equal([begun, warnings], [1, 1])
    }
    assertNone(await eventsOf(market.platform), ({ state }) => state !== 'done')
  })

  it('forgets what it has read and ends its thread when no one asks', async ({ market, shop }) => {
    await sell(market, shop, BATCH)
    const reader = createOrderReader(market.platform, { idleMs: 300 })
    await askUntilRead(reader, BATCH)
    await eventually(() => reader.read().size === 0)
    // Asked again, it begins another one.
    assert.is((await askUntilRead(reader, BATCH)).size, BATCH)
    await reader.close()
    reader.readOn([])
    assert.is(reader.read().size, 0)
  })

  it.run()
}
