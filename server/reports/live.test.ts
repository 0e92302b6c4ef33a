// mostly waits

import * as assert from 'uvu/assert'
import { createIds, firstIdAt } from '../platform/ids.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { type Follower, follow, openWebSide, type WebSide } from '../test/testkit/live-followers.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { closeOpenCycle } from '../test/testkit/marketplace.ts'
import { addApiKey, logIn } from '../test/testkit/people.ts'
import { assertMapped } from '../test/testkit/pluck.ts'
import { rowOf } from '../test/testkit/rows.ts'
import { deleteApiKey } from '../users/api-keys.service.ts'
import { logout } from '../users/sessions.service.ts'
import { suspendUser } from '../users/users.service.ts'
import { liveStreams } from './live-streams.ts'

for (const { it } of marketSuites<{ web: WebSide }>('live streams', {
  settings: { LIVE_STREAMS: '6', LIVE_STREAMS_PER_USER: '2' },
  idsOf: createIds,
  shared: true,
})) {
  it.before(async (context) => {
    context.web = await openWebSide(context.platform)
  })
  it.after.each(({ platform }) => liveStreams(platform).idle())
  it.after(({ web }) => web.close())

  const started = async (follower: Follower) => {
    await follower.until(() => follower.events.length > 0)
    return follower
  }

  it('sends each party its own changes only', async ({ market, web }) => {
    const { platform } = market
    const { shop, creator, link } = await market.addTrade()
    const other = await market.addShop('Other')
    const merchant = await started(follow(web.base, await logIn(platform, shop.actor)))
    const earner = await started(follow(web.base, await logIn(platform, creator)))
    const stranger = await started(follow(web.base, await logIn(platform, other.actor)))
    assert.is(merchant.events[0]?.data.kind, 'start')

    await market.order(shop, link, 1_000_000)
    await market.order(shop, link, 50_000, { email: 'x@example.com', financialStatus: 'pending' })
    await market.drainUntilIdle()
    const cycleId = await closeOpenCycle(platform, shop)
    await market.drainUntilIdle()
    await market.confirmPayment(cycleId)
    await market.drainUntilIdle()
    await market.payOut('confirmed')

    // Changes of different kinds are read one after the other: which one is sent last is not defined.
    await earner.until(() => earner.received().length >= 5)
    await merchant.until(() => merchant.received().length >= 9)
    const both = ['payout paid', 'payout pending', 'payout submitted', 'sale accepted', 'sale rejected']
    const cycle = ['charged', 'closed', 'invoiced', 'opened'].map((change) => `billing_cycle ${change}`)
    assert.equal(earner.received().sort(), both)
    assert.equal(merchant.received().sort(), [...cycle, ...both])
    assert.equal(stranger.received(), [])
    for (const { data } of earner.events) {
      if (data.kind === 'sale') assert.is(data.sale.platform_fee, undefined)
      if (data.kind === 'payout') assert.is(data.payout.amount, '1250.00')
    }
    const paid = merchant.events.find(({ data }) => data.kind === 'payout' && data.change === 'paid')?.data
    const payee = paid?.kind === 'payout' && paid.payout.creator
    assert.equal(payee, { id: creator.userId, display_name: 'creator' })
    for (const follower of [merchant, earner, stranger]) follower.stop()
  })

  it('announces a sale again when it is decided again', async ({ market, platform, web }) => {
    const { shop, creator, link } = await market.addTrade()
    const unpaid = await market.sell(shop, link, 1_000_000, { financialStatus: 'pending' })
    const earner = await started(follow(web.base, await logIn(platform, creator)))
    market.clock.pass(1000)
    await market.deliver(shop, unpaid.replace('"pending"', '"paid"'))
    await market.drainUntilIdle()
    await earner.until(() => earner.received().length > 0)
    assert.equal(earner.received(), ['sale accepted'])
    const event = earner.events.find(({ data }) => data.kind === 'sale')?.data
    earner.stop()
    const sale = event?.kind === 'sale' ? event.sale : null
    assert.is(event?.at, sale?.decided_at)
    assert.is.not(sale?.decided_at, sale?.created_at)
  })

  it('goes on after the last event id, with what was missed, once', async ({ market, platform, web }) => {
    const { shop, link } = await market.addTrade()
    const token = await logIn(platform, shop.actor)
    await market.sell(shop, link, 10_000)

    const first = await started(follow(web.base, token))
    await market.sell(shop, link, 20_000)
    await first.until(() => first.received().length === 1)
    first.stop()
    await liveStreams(platform).idle()
    for (let number = 0; number < 260; number += 1) await market.order(shop, link, 1000 + number)
    await market.drainUntilIdle()

    const second = follow(web.base, token, first.lastId())
    await second.until(() => second.received().length === 260)
    await market.sell(shop, link, 30_000)
    await second.until(() => second.received().length === 261)
    const ids = second.events.map(({ data }) => data.kind === 'sale' && data.sale.id)
    assert.is(new Set(ids).size, 261)

    // From the middle, too: what had been sent after that is sent again, and nothing before it.
    const third = follow(web.base, token, second.events[99]?.id)
    await third.until(() => third.received().length === 161)
    assertMapped(third.events, ({ data }) => data.kind === 'sale' && data.sale.id, ids.slice(100))
    second.stop()
    third.stop()
  })

  it('tells of a change that commits behind later ones, once', async ({ market, platform, clock, web }) => {
    const { shop, link } = await market.addTrade()
    const token = await logIn(platform, shop.actor)
    const follower = await started(follow(web.base, token))
    await market.sell(shop, link, 10_000, { financialStatus: 'pending' })
    await follower.until(() => follower.received().length === 1)
    const sale = await rowOf(platform, 'sales', { merchant_id: shop.merchantId })
    const id = `${firstIdAt(clock.now() - 60_000).slice(0, 18)}${platform.ids.next().slice(18)}`
    const late = { ...sale, id, order_id: 'late' }
    await platform.database.transaction((tx) => tx.insertInto('sales').values(late).execute())
    await follower.until(() => follower.received().length === 2)
    assert.is(follower.events.at(-1)?.data.kind === 'sale' && follower.events.at(-1)?.id.includes('.'), true)
    follower.stop()
    const again = follow(web.base, token, follower.events[1]?.id)
    await again.until(() => again.received().length === 1)
    assert.equal(again.events[0]?.data, follower.events[2]?.data)
    again.stop()
  })

  it('ends with the session or API key: log-out, deletion and suspension', async (context) => {
    const { market, platform, web } = context
    const [shop, creator] = [await market.addShop(), await market.addCreator()]
    const leaving = await started(follow(web.base, await logIn(platform, shop.actor)))
    const suspended = await started(follow(web.base, await logIn(platform, creator)))
    const { userId } = await market.addCreator()
    const { id, key } = await addApiKey(platform, userId, 'read')
    const program = await started(follow(web.base, key))
    await logout(platform, shop.actor)
    await deleteApiKey(platform, userId, id)
    await suspendUser(platform, { userId: creator.userId, actor: 'operator', reason: null })
    for (const follower of [leaving, suspended, program])
      await follower.until(() => follower.refusal() === 'unauthenticated')
  })

  /** The code of the refusal; the answer is a stream without one. */
  const refusedFor = async (web: WebSide, token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${web.base}/trpc/live.changes?input={}`, { headers })
    const { code } = /"code":"(?<code>unavailable|rate_limited)"/.exec(await answer.text())?.groups ?? {}
    // Proxies keep nothing and hold nothing back.
    assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/)
    assert.is(answer.headers.get('cache-control'), 'no-store, no-transform')
    return code
  }

  it('refuses a client without permission, no event id, more streams', async ({ market, platform, web }) => {
    const token = await logIn(platform, (await market.addShop()).actor)
    for (const [given, lastEventId, code] of [
      [null, undefined, 'unauthenticated'],
      ['wrong', undefined, 'unauthenticated'],
      [token, 'yesterday', 'validation_failed'],
    ] as const) {
      const follower = follow(web.base, given, lastEventId)
      await follower.until(() => follower.refusal() !== null)
      assert.is(follower.refusal(), code)
    }
    const open = [await started(follow(web.base, token)), await started(follow(web.base, token))]
    assert.is(await refusedFor(web, token), 'rate_limited')
    const creatorToken = await logIn(platform, await market.addCreator())
    open.push(await started(follow(web.base, creatorToken)))
    assert.is(await refusedFor(web, creatorToken), 'unavailable')
    for (const follower of open) follower.stop()
    await liveStreams(platform).idle()
    const again = await started(follow(web.base, token))
    again.stop()
  })

  it('keeps half of the places for accounts that have sold', async ({ market, platform, web }) => {
    const { shop, creator, link } = await market.addTrade()
    await market.sell(shop, link, 10_000)
    const open: Follower[] = []
    const newcomers: string[] = []
    for (let index = 0; index < 4; index += 1) {
      newcomers.push(await logIn(platform, await market.addCreator(`newcomer ${index}`)))
    }
    const [first = '', second = '', ...others] = newcomers
    for (const token of [first, first, second]) open.push(await started(follow(web.base, token)))
    for (const token of [second, ...others]) assert.is(await refusedFor(web, token), 'unavailable')
    for (const actor of [shop.actor, creator]) {
      const token = await logIn(platform, actor)
      open.push(await started(follow(web.base, token)))
    }
    open.shift()?.stop()
    await eventually(() => liveStreams(platform).count === 4)
    open.push(await started(follow(web.base, others[0] ?? '')))
    for (const follower of open) follower.stop()
  })

  it.run()
}
