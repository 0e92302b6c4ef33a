import * as assert from 'uvu/assert'
import { type ClaimedEvent, settleAll } from '../inbox/inbox.service.ts'
import { MAX_ATTEMPTS } from '../inbox/retry.rule.ts'
import { afterCommit } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../processor/events.settings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { eventsOf, type Marketplace, openFlagsOf, type Shop } from '../test/testkit/marketplace.ts'
import { messageOf } from '../test/testkit/rejection.ts'
import { openRival } from '../test/testkit/rival.ts'
import { MINUTE } from '../test/testkit/testbed.ts'
import { processorEventApplier } from './apply-processor-events.ts'
import { type ApplyEvents, drainEvents } from './drain-events.ts'
import { drainUntilIdle } from './worker.ts'

interface Context {
  market: Marketplace
  shop: Shop
}

const EVENTS = 40

for (const { it, dialect } of marketSuites<Context>('draining events')) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
  })

  const fill = async (market: Marketplace, shop: Shop, events = EVENTS) => {
    for (let index = 0; index < events; index += 1)
      await market.deliver(shop, '{}', { deliveryId: `e${index}` })
  }
  /** Records the order in which events are applied, in the transaction that settles them; `hurt` may throw. */
  const applier = (hurt: (events: readonly ClaimedEvent[]) => void) => {
    const applied: string[] = []
    let transactions = 0
    const apply: ApplyEvents = async (platform: Platform, events) => {
      transactions += 1
      await platform.database.transaction(async (tx) => {
        hurt(events)
        const settled = events.map((event) => ({ event, outcome: { kind: 'done', result: {} } as const }))
        await settleAll(platform, tx, settled)
        afterCommit(tx, () => applied.push(...events.map((event) => event.delivery_id)))
      })
    }
    return { apply, applied, transactions: () => transactions }
  }
  const away = () => {
    const code = dialect === 'sqlite' ? 'SQLITE_IOERR' : '57P01'
    return Object.assign(new Error('the database is away'), { code })
  }
  const states = async ({ platform }: Marketplace) =>
    Map.groupBy(await eventsOf(platform), (event) => event.state)

  it('applies the rest of a batch in order, and retries the event that fails', async ({ market, shop }) => {
    await fill(market, shop)
    let poisoned = 'e17'
    const work = applier((events) => {
      if (events.some((event) => event.delivery_id === poisoned)) throw new Error('poison')
    })
    const drain = () => drainEvents(market.platform, 'store', 500, work.apply)
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

  /** A batch of a worker, during which `meanwhile` happens before anything of it is settled. */
  const drainDuring = async (market: Marketplace, limit: number, meanwhile: () => Promise<unknown>) => {
    const work = applier(() => {})
    let first = true
    const apply: ApplyEvents = async (platform, events, read) => {
      if (first) await meanwhile()
      first = false
      return work.apply(platform, events, read)
    }
    const done = await drainEvents(market.platform, 'store', limit, apply)
    return { done, applied: work.applied }
  }

  it('settles nothing of a store that a worker ahead in time has begun', async ({ market, shop }) => {
    const other = await market.addShop()
    await fill(market, shop, 4)
    await fill(market, other, 1)
    const rival = await openRival(market.bed)
    const ahead: Platform = { ...rival.platform, clock: { now: () => market.clock.now() + 16_000 } }
    const held: ClaimedEvent[] = []
    const hold: ApplyEvents = async (_, events) => void held.push(...events)
    const late = await drainDuring(market, 500, async () => {
      assert.is(await drainEvents(ahead, 'store', 500, hold), 1)
    })
    // The other store's event was not taken.
    assert.equal([held.map((event) => event.delivery_id), late.applied], [['e0'], ['e0']])
    // Now the first worker's clock is behind that of the lease: it waits for it nevertheless.
    const mine = applier(() => {})
    const drain = (platform: Platform) => drainEvents(platform, 'store', 500, mine.apply)
    assert.equal([await drain(market.platform), mine.applied], [0, []])
    await applier(() => {}).apply(rival.platform, held, new Map())
    await rival.close()
    while ((await drain(market.platform)) > 0);
    assert.equal(mine.applied, ['e1', 'e2', 'e3'])
  })

  it('leaves other stores to another worker until its batch is settled', async ({ market, shop }) => {
    const other = await market.addShop()
    await fill(market, shop, 4)
    await fill(market, other, 2)
    const rival = await openRival(market.bed)
    const theirs = applier(() => {})
    const during = await drainDuring(market, 3, async () => {
      const drain = () => drainEvents(rival.platform, 'store', 3, theirs.apply)
      assert.equal([await drain(), await drain()], [2, 0])
    })
    await rival.close()
    assert.equal(theirs.applied, ['e0', 'e1'])
    assert.equal(during.applied, ['e0', 'e1', 'e2'])
  })

  it('sets an event aside that ended the process each time, not its neighbors', async ({ market, shop }) => {
    await fill(market, shop, 6)
    /** A process that ends as soon as it has the body of `e2`: nothing that it holds is settled or released. */
    const runOnce = async () => {
      const work = applier((events) => {
        if (events.some((event) => event.delivery_id === 'e2')) throw new Ended()
      })
      class Ended extends Error {}
      const database = {
        ...market.platform.database,
        faultOf: (error: unknown) =>
          error instanceof Ended ? { kind: 'unavailable' as const } : market.platform.database.faultOf(error),
        // What a process that has ended cannot do.
        transaction: ((body) =>
          ended
            ? Promise.reject(new Error('ended'))
            : market.platform.database.transaction(body).catch((error) => {
                ended = error instanceof Ended
                throw error
              })) as Platform['database']['transaction'],
      }
      let ended = false
      const platform = { ...market.platform, database } as Platform
      try {
        while ((await drainEvents(platform, 'store', 500, work.apply)) > 0);
      } catch (error) {
        assert.ok(error instanceof Ended)
      }
      market.clock.pass(MINUTE)
    }
    for (let run = 0; run <= MAX_ATTEMPTS; run += 1) await runOnce()
    const events = await eventsOf(market.platform)
    const ends = events.map(({ delivery_id, state, attempts }) => `${delivery_id} ${state} ${attempts}`)
    assert.equal(ends.splice(2, 1), ['e2 set_aside 12'])
    assert.equal(ends, ['e0 done 2', 'e1 done 2', 'e3 done 2', 'e4 done 2', 'e5 done 2'])
    assert.match(events[2]?.reason ?? '', /The process stopped in every attempt/)
    assert.is((await openFlagsOf(market.platform)).length, 1)
  })

  it('loads no more than 32 MB of bodies in a batch', async ({ market, shop }) => {
    const body = JSON.stringify({ filler: 'x'.repeat(12 * 1024 * 1024) })
    for (let index = 0; index < 4; index += 1)
      await market.deliver(shop, body, { deliveryId: `e${index}`, topic: 'shop/update' })
    const taken: number[] = []
    const work = applier((events) => taken.push(events.length))
    const drain = () => drainEvents(market.platform, 'store', 500, work.apply)
    assert.equal([await drain(), await drain(), await drain()], [2, 2, 0])
    assert.equal(taken, [2, 2])
  })

  it('writes nothing while nothing is due', async ({ market }) => {
    const transaction = () => Promise.reject(new Error('a transaction'))
    const idle = { ...market.platform, database: { ...market.platform.database, transaction } }
    assert.is(await drainEvents(idle, 'store', 500, applier(() => {}).apply), 0)
  })

  it('keeps everything when the database becomes unavailable during a batch', async ({ market, shop }) => {
    await fill(market, shop)
    let isAway = true
    const work = applier(() => {
      if (isAway) throw away()
    })
    const drain = () => drainEvents(market.platform, 'store', 500, work.apply)
    assert.is(await messageOf(drain()), 'the database is away')
    assert.is(work.transactions(), 1)
    const left = (await states(market)).get('pending') ?? []
    assert.equal([left.length, new Set(left.map(({ attempts }) => attempts))], [EVENTS, new Set([0])])
    isAway = false
    assert.is(await drain(), EVENTS)
    assert.is((await states(market)).get('done')?.length, EVENTS)
  })

  for (const lost of ['a claim', 'a release'] as const) {
    it(`has nothing wait for a lease when the answer to ${lost} was lost`, async ({ market, shop }) => {
      await fill(market, shop)
      const { database } = market.platform
      let transactions = 0
      const transaction: typeof database.transaction = async (work) => {
        transactions += 1
        if (lost === 'a release' && transactions === 3) throw away()
        const result = await database.transaction(work)
        if (lost === 'a claim' && transactions === 1) throw away()
        return result
      }
      const platform = { ...market.platform, database: { ...database, transaction } }
      const broken = applier(() => {
        throw away()
      })
      assert.is(await messageOf(drainEvents(platform, 'store', 500, broken.apply)), 'the database is away')
      const held = await eventsOf(platform)
      assert.ok(held.every(({ attempts, lease_token }) => attempts === 1 && lease_token !== null))
      assert.is(await drainEvents(platform, 'store', 500, applier(() => {}).apply), EVENTS)
      const done = (await states(market)).get('done') ?? []
      assert.equal([done.length, new Set(done.map(({ attempts }) => attempts))], [EVENTS, new Set([1])])
    })
  }

  it('applies each event of the processor once, around one that cannot be applied', async ({ market }) => {
    for (let index = 0; index < EVENTS; index += 1) await market.processorSays('unheard.of', {}, `p${index}`)
    const { database } = market.platform
    let transactions = 0
    const transaction: typeof database.transaction = (work) => {
      transactions += 1
      return database.transaction(work)
    }
    const platform: Platform = { ...market.platform, database: { ...database, transaction } }
    const applyOwn = processorEventApplier(GENERIC_PROCESSOR_EVENTS)
    const poisoned = (event: ClaimedEvent) => (event.delivery_id === 'p17' ? poisonedOf(event) : event)
    const apply: ApplyEvents = (_, events) => applyOwn(platform, events.map(poisoned))
    await drainEvents(platform, 'processor', 500, apply)
    // The claim, one for each good event, and one that requeues the poisoned one.
    assert.is(transactions, 1 + (EVENTS - 1) + 1)
    const found = await states(market)
    assert.is(found.get('set_aside')?.length, EVENTS - 1)
    const [waiting] = found.get('pending') ?? []
    assert.equal([waiting?.delivery_id, waiting?.attempts, waiting?.lease_token], ['p17', 1, null])
  })

  it('requeues an event whatever the error says, even if the cut splits a character', async ({ market }) => {
    await market.processorSays('unheard.of', {})
    const eventRules = {
      ...GENERIC_PROCESSOR_EVENTS,
      get type_field(): string {
        throw new Error(`${'x'.repeat(499)}🧵`)
      },
    }
    await drainUntilIdle({ platform: market.platform, processor: market.processor, eventRules })
    const [event] = await eventsOf(market.platform)
    assert.equal([event?.state, event?.attempts, event?.lease_token], ['pending', 1, null])
    assert.is(event?.reason, `${'x'.repeat(499)}\ufffd`)
  })

  it.run()
}

/** In the middle of a batch it is as bad as one that fails in its own transaction. */
function poisonedOf(event: ClaimedEvent): ClaimedEvent {
  return {
    ...event,
    get text(): string {
      throw new Error('poison')
    },
  }
}
