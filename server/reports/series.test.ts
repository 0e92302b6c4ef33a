import * as assert from 'uvu/assert'
import { rollUpClicks } from '../clicks/clicks.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { createIds } from '../platform/ids.ts'
import { dateOfDay, localDay } from '../platform/local-days.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Marketplace, Shop } from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { outcomeOf, requestOf } from '../test/testkit/people.ts'
import { pluckAll } from '../test/testkit/pluck.ts'
import { DAY, HOUR } from '../test/testkit/testbed.ts'
import { summariesRouter } from './reports.procedures.ts'

type Ask = { by: 'day' | 'link' | 'offer' | 'sub_id'; from?: string; to?: string }

const ask = (market: Marketplace, actor: Actor, input: Ask) =>
  summariesRouter.createCaller(requestOf(market.platform, actor)).series(input)

/** The items that are not zero, as one line each. */
async function linesOf(market: Marketplace, actor: Actor, input: Ask): Promise<string[]> {
  const { items } = await ask(market, actor, input)
  return items
    .filter(({ clicks, sales, rejected }) => clicks + sales + rejected > 0)
    .map(({ key, clicks, unique_clicks, sales, rejected, net_amount, commission }) =>
      [key, clicks, unique_clicks, sales, rejected, net_amount, commission].join(' '),
    )
}

const dayOf = (time: number) => dateOfDay(localDay(time, 'Asia/Karachi'))

interface Context {
  shop: Shop
  sana: Actor
  lawn: LinkRecord
  lamp: LinkRecord
}

for (const { it } of marketSuites<Context>('series', { idsOf: createIds })) {
  it.before.each(async (context) => {
    const { market } = context
    const shop = await market.addShop()
    const sana = await market.addCreator('Sana')
    const lawn = await market.addLink(shop, sana, { title: 'Lawn' })
    const lamp = await market.addLink(shop, sana, { title: 'Lamp' })
    Object.assign(context, { shop, sana, lawn, lamp })
  })

  const sell = async (
    market: Marketplace,
    shop: Shop,
    link: LinkRecord,
    subId: string | null,
    paid = true,
  ) => {
    const click = await market.click(link, true, subId)
    const changes = paid ? {} : { financialStatus: 'pending' as const }
    await market.deliver(
      shop,
      orderBody({ price: 100_000, click, createdAt: market.clock.now(), ...changes }),
    )
    await market.drainUntilIdle()
  }

  it('counts visits and sales by day, link, offer and sub id, before and after the roll-up', async (context) => {
    const { market, shop, sana, lawn, lamp } = context
    const started = market.clock.now()
    await sell(market, shop, lawn, 'reel')
    await market.click(lawn, true, 'reel')
    await market.click(lawn, false, 'reel')
    market.clock.pass(DAY)
    await sell(market, shop, lamp, null)
    await sell(market, shop, lamp, 'story', false)
    await market.click(lamp)
    const expectAll = async () => {
      const later = market.clock.now()
      const days = [`${dayOf(started)} 2 2 1 0 1000.00 125.00`, `${dayOf(later)} 3 3 1 1 1000.00 125.00`]
      assert.equal(await linesOf(market, sana, { by: 'day' }), days)
      assert.equal(await linesOf(market, shop.actor, { by: 'day' }), days)
      assert.equal(await linesOf(market, sana, { by: 'link' }), [
        `${lamp.slug} 3 3 1 1 1000.00 125.00`,
        `${lawn.slug} 2 2 1 0 1000.00 125.00`,
      ])
      assert.equal(await linesOf(market, shop.actor, { by: 'offer' }), [
        `${lamp.offer_id} 3 3 1 1 1000.00 125.00`,
        `${lawn.offer_id} 2 2 1 0 1000.00 125.00`,
      ])
      const subs = [' 2 2 1 0 1000.00 125.00', 'reel 2 2 1 0 1000.00 125.00', 'story 1 1 0 1 0.00 0.00']
      assert.equal(await linesOf(market, sana, { by: 'sub_id' }), subs)
      const today = { from: new Date(later - 1).toISOString() }
      assert.equal(await linesOf(market, sana, { by: 'sub_id', ...today }), [subs[0], subs[2]])
    }
    await expectAll()
    await rollUpClicks(market.platform)
    await expectAll()
    await market.verify()
  })

  it('names links and offers, and shows each party its own', async ({ market, shop, sana, lawn }) => {
    await sell(market, shop, lawn, null)
    const label = async (actor: Actor, by: Ask['by']) => (await ask(market, actor, { by })).items[0]?.label
    assert.is(await label(sana, 'link'), 'Lawn')
    assert.is(await label(shop.actor, 'link'), 'Lawn, Sana')
    assert.is(await label(shop.actor, 'offer'), 'Lawn')
    assert.equal(await linesOf(market, await market.addCreator('Bilal'), { by: 'day' }), [])
    assert.equal(await linesOf(market, (await market.addShop('Other')).actor, { by: 'day' }), [])
  })

  it('holds each local day of the period once, in order, and refuses a period of more than 366 days', async (context) => {
    const { market, sana, lawn } = context
    const midnight = Date.parse('2026-03-01T00:00:00+05:00')
    market.clock.pass(midnight - market.clock.now() - 1)
    await market.click(lawn)
    market.clock.pass(1)
    await market.click(lawn)
    await rollUpClicks(market.platform)
    const period = { from: '2026-02-27T20:00:00Z', to: '2026-03-02T19:00:00Z' }
    const { items, timezone, currency } = await ask(market, sana, { by: 'day', ...period })
    assert.equal([timezone, currency], ['Asia/Karachi', 'PKR'])
    assert.equal(pluckAll(items, 'key', 'clicks'), [
      ['2026-02-28', 1],
      ['2026-03-01', 1],
      ['2026-03-02', 0],
    ])
    const at = (time: number) => new Date(time).toISOString()
    const year = await ask(market, sana, { by: 'day', from: at(midnight - 366 * DAY), to: at(midnight) })
    assert.is(year.items.length, 366)
    const empty = await ask(market, sana, { by: 'day', from: at(midnight), to: at(midnight) })
    assert.equal(empty.items, [])
    const long = { from: at(midnight - 366 * DAY - HOUR), to: at(midnight) }
    assert.is(await outcomeOf(ask(market, sana, { by: 'day', ...long })), 'validation_failed')
    assert.is(
      await outcomeOf(ask(market, sana, { by: 'day', from: long.to, to: long.from })),
      'validation_failed',
    )
  })

  it.run()
}
