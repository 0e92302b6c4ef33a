import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type ClaimedEvent, settle, settleAll } from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import { testDialects } from '../proof/testbed/databases.ts'
import { eventsOf, type Marketplace, openMarketplace, type Shop } from '../proof/testbed/marketplace.ts'
import { MINUTE } from '../proof/testbed/testbed.ts'
import { type ApplyEvents, drainEvents } from './drain-events.ts'

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

  const fill = async (market: Marketplace, shop: Shop) => {
    for (let index = 0; index < EVENTS; index += 1)
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

  it.run()
}
