import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type ClaimedEvent,
  claimEvents,
  type EventOutcome,
  settle,
  settleAll,
} from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../processor/events.settings.ts'
import { testDialects } from '../proof/testbed/databases.ts'
import { eventsOf, type Marketplace, openMarketplace, type Shop } from '../proof/testbed/marketplace.ts'
import { MINUTE } from '../proof/testbed/testbed.ts'
import { processorEventApplier } from './apply-processor-events.ts'
import { type ApplyEvents, drainEvents } from './drain-events.ts'
import { workOff } from './worker.ts'

interface Context {
  market: Marketplace
  shop: Shop
}

const EVENTS = 40

for (const dialect of testDialects()) {
  const it = suite<Context>(`draining events on ${dialect}`)
  it.before.each(async (context) => {
    context.market = await openMarketplace(dialect)
    context.shop = await context.market.addShop()
  })
  it.after.each(({ market }) => market.close())

  const fill = async (market: Marketplace, shop: Shop, events = EVENTS) => {
    for (let index = 0; index < events; index += 1)
      await market.deliver(shop, '{}', { deliveryId: `e${index}` })
  }
  const giveBack =
    ({ platform }: Marketplace) =>
    (event: ClaimedEvent, error: unknown) =>
      platform.database.transaction((tx) =>
        settle(platform, tx, event, { kind: 'retry', reason: String(error) }),
      )
  /** Notes what is applied in which order, in the transaction that settles it; `hurt` may throw. */
  const applier = (hurt: (events: readonly ClaimedEvent[]) => void) => {
    const applied: string[] = []
    let transactions = 0
    const apply: ApplyEvents = (platform: Platform, events) => {
      transactions += 1
      return platform.database.transaction(async (tx) => {
        hurt(events)
        const settled = events.map((event) => ({ event, outcome: { kind: 'done', result: {} } as const }))
        await settleAll(platform, tx, settled)
        applied.push(...events.map((event) => event.deliveryId))
      })
    }
    return { apply, applied, transactions: () => transactions }
  }
  const states = async ({ platform }: Marketplace) =>
    Map.groupBy(await eventsOf(platform), (event) => event.state)

  it('applies the good rest of a batch in order, in a few transactions, and tries the poisoned one again', async ({
    market,
    shop,
  }) => {
    await fill(market, shop)
    let poisoned = 'e17'
    const work = applier((events) => {
      if (events.some((event) => event.deliveryId === poisoned)) throw new Error('poison')
    })
    const drain = () => drainEvents(market.platform, 'store', 500, work.apply, giveBack(market))
    assert.is(await drain(), EVENTS)
    const good = Array.from({ length: EVENTS }, (_, index) => `e${index}`).filter((id) => id !== poisoned)
    assert.equal(work.applied, good)
    assert.ok(work.transactions() <= 13, `${work.transactions()} transactions`)
    const [waiting] = (await states(market)).get('pending') ?? []
    assert.equal([waiting?.delivery_id, waiting?.attempts, waiting?.lease_token], ['e17', 1, null])
    poisoned = ''
    market.clock.pass(60 * MINUTE)
    assert.is(await drain(), 1)
    assert.is((await states(market)).get('done')?.length, EVENTS)
  })

  if (dialect === 'postgresql') {
    it('has lanes that share the stores out: none is in two, none in no lane, its events in order', async ({
      market,
      shop,
    }) => {
      const shops = [shop]
      while (shops.length < 20) shops.push(await market.addShop())
      for (const one of shops) await fill(market, one, 3)
      const stores: Set<string>[] = []
      const applied: ClaimedEvent[] = []
      for (const index of [0, 1]) {
        const seen: ClaimedEvent[] = []
        const apply: ApplyEvents = async (_, events) => {
          seen.push(...events)
        }
        await drainEvents(market.platform, 'store', 500, apply, giveBack(market), { index, of: 2 })
        stores.push(new Set(seen.map((event) => event.scope)))
        applied.push(...seen)
      }
      assert.ok([...(stores[0] ?? [])].every((store) => !stores[1]?.has(store)))
      assert.equal(
        [...new Set(applied.map((event) => event.scope))].sort(),
        shops.map((one) => one.storeId).sort(),
      )
      for (const { storeId } of shops) {
        const own = applied.filter((event) => event.scope === storeId).map((event) => event.deliveryId)
        assert.equal(own, ['e0', 'e1', 'e2'])
      }
    })
  }

  if (dialect === 'sqlite') {
    /** A batch of the worker's, before which somebody else does `meanwhile`. */
    const drainAfter = async (market: Marketplace, limit: number, meanwhile: () => Promise<unknown>) => {
      const work = applier(() => {})
      let first = true
      const apply: ApplyEvents = async (platform, events) => {
        if (first) await meanwhile()
        first = false
        return work.apply(platform, events)
      }
      const done = await drainEvents(market.platform, 'store', limit, apply, giveBack(market))
      return { done, applied: work.applied }
    }
    const settleTheirs = (
      { platform }: Marketplace,
      outcome: EventOutcome,
      events: readonly ClaimedEvent[],
    ) =>
      platform.database.transaction((tx) =>
        settleAll(
          platform,
          tx,
          events.map((event) => ({ event, outcome })),
        ),
      )

    it('takes no lease, and leaves to another worker what that one took or finished meanwhile', async ({
      market,
      shop,
    }) => {
      await fill(market, shop, 6)
      const taken = await drainAfter(market, 500, () => claimEvents(market.platform, 'store', 2))
      // The store is the other one's as long as it holds anything of it.
      assert.equal(taken, { done: 0, applied: [] })
      market.clock.pass(MINUTE)
      const finished = await drainAfter(market, 500, async () => {
        const theirs = await claimEvents(market.platform, 'store', 2)
        await settleTheirs(market, { kind: 'done', result: { by: 'them' } }, theirs)
      })
      assert.equal(finished, { done: 4, applied: ['e2', 'e3', 'e4', 'e5'] })
      const events = await eventsOf(market.platform)
      assert.equal([...new Set(events.map(({ state, attempts }) => `${state} ${attempts}`))], ['done 1'])
    })

    it('sees that an event was tried and given back meanwhile, which leaves no lease behind', async ({
      market,
      shop,
    }) => {
      await fill(market, shop, 3)
      const tried = await drainAfter(market, 500, async () => {
        const theirs = await claimEvents(market.platform, 'store', 1)
        await settleTheirs(market, { kind: 'retry', reason: 'not yet' }, theirs)
      })
      assert.equal(tried, { done: 2, applied: ['e1', 'e2'] })
      const [waiting] = (await states(market)).get('pending') ?? []
      assert.equal([waiting?.delivery_id, waiting?.attempts], ['e0', 1])
    })

    it('goes past nobody who holds a later event of the same store', async ({ market, shop }) => {
      await fill(market, shop, 3)
      const { database, clock } = market.platform
      const held = { lease_token: 'theirs', lease_until: clock.now() + 1000 }
      const passed = await drainAfter(market, 2, () =>
        database.transaction((tx) =>
          tx.updateTable('inbound_events').set(held).where('delivery_id', '=', 'e2').execute(),
        ),
      )
      assert.equal(passed, { done: 0, applied: [] })
      assert.is((await states(market)).get('pending')?.length, 3)
    })

    it('writes nothing while nothing is due', async ({ market }) => {
      const database = {
        ...market.platform.database,
        transaction: () => Promise.reject(new Error('a transaction')),
      }
      const idle = { ...market.platform, database }
      assert.is(await drainEvents(idle, 'store', 500, applier(() => {}).apply, giveBack(market)), 0)
    })
  }

  it('keeps everything when the database goes away in the middle of a batch', async ({ market, shop }) => {
    await fill(market, shop)
    let away = true
    const code = dialect === 'sqlite' ? 'SQLITE_IOERR' : '57P01'
    const work = applier(() => {
      if (away) throw Object.assign(new Error('the database is away'), { code })
    })
    const drain = () => drainEvents(market.platform, 'store', 500, work.apply, giveBack(market))
    const error = await drain().catch((reason: Error) => reason)
    assert.match(String(error), 'the database is away')
    assert.is(work.transactions(), 1)
    assert.is((await states(market)).get('pending')?.length, EVENTS)
    away = false
    market.clock.pass(MINUTE)
    assert.is(await drain(), EVENTS)
    assert.is((await states(market)).get('done')?.length, EVENTS)
  })

  it('applies each event of the processor once, around one that cannot be applied', async ({ market }) => {
    for (let index = 0; index < EVENTS; index += 1) await market.processorSays('unheard.of', {}, `p${index}`)
    const { database } = market.platform
    let transactions = 0
    const platform: Platform = {
      ...market.platform,
      database: {
        ...database,
        transaction: (work) => {
          transactions += 1
          return database.transaction(work)
        },
      },
    }
    const applyOwn = processorEventApplier(GENERIC_PROCESSOR_EVENTS)
    const apply: ApplyEvents = (_, events) =>
      applyOwn(
        platform,
        events.map((event) => (event.deliveryId === 'p17' ? poisonedOf(event) : event)),
      )
    await drainEvents(platform, 'processor', 500, apply, giveBack({ ...market, platform }))
    // The claim, one for each good event, and one that gives the poisoned one back.
    assert.is(transactions, 1 + (EVENTS - 1) + 1)
    const found = await states(market)
    assert.is(found.get('ignored')?.length, EVENTS - 1)
    const [waiting] = found.get('pending') ?? []
    assert.equal([waiting?.delivery_id, waiting?.attempts, waiting?.lease_token], ['p17', 1, null])
  })

  it('gives an event back whatever the error says, also where the cut goes through a character', async ({
    market,
  }) => {
    await market.processorSays('unheard.of', {})
    const eventRules = {
      ...GENERIC_PROCESSOR_EVENTS,
      get type_field(): string {
        throw new Error(`${'x'.repeat(499)}🧵`)
      },
    }
    await workOff({ platform: market.platform, processor: market.processor, eventRules })
    const [event] = await eventsOf(market.platform)
    assert.equal([event?.state, event?.attempts, event?.lease_token], ['pending', 1, null])
    assert.is(event?.reason, `${'x'.repeat(499)}\ufffd`)
  })

  it('works off more than a batch, and looks at each event once', async ({ market, shop }) => {
    const shops = [shop]
    while (shops.length < 12) shops.push(await market.addShop())
    // More than a batch of the worker, so that what is left goes by lanes where there are any.
    const each = 90
    await Promise.all(shops.map((one) => fill(market, one, each)))
    await market.workOff()
    const events = await eventsOf(market.platform)
    assert.is(events.length, shops.length * each)
    // An empty order cannot be read: what matters here is that it was looked at, and by nobody twice.
    assert.equal([...new Set(events.map(({ state, attempts }) => `${state} ${attempts}`))], ['set_aside 1'])
  })

  it.run()
}

/** In the middle of a batch it is as bad as one that fails in its own transaction. */
function poisonedOf(event: ClaimedEvent): ClaimedEvent {
  return {
    ...event,
    get rawBody(): Buffer {
      throw new Error('poison')
    },
  }
}
