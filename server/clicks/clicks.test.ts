import * as assert from 'uvu/assert'
import type { LinkRecord } from '../links/links.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { countOf } from '../platform/database/bulk-values.ts'
import { createIds } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { type MarketContext, marketSuites } from '../test/testkit/market-suites.ts'
import type { Trade } from '../test/testkit/marketplace.ts'
import { columnsOf, rowsOf } from '../test/testkit/rows.ts'
import { DAY, HOUR } from '../test/testkit/testbed.ts'
import { clicksPrunedBefore, enforceClickRetention } from './click-retention.service.ts'
import {
  type ClickRecorder,
  countVisits,
  createClickRecorder,
  linksOfClicks,
  type NewClick,
  rollUpClicks,
} from './clicks.service.ts'

const SECOND = 1000
const PHONE = { address: '203.0.113.7', agent: 'Phone' }

interface Clicks extends Trade {
  recorder: ClickRecorder
}
type Context = MarketContext & Clicks

for (const { it } of marketSuites<Clicks>('clicks', {
  settings: { CLICK_RETENTION_DAYS: '486' },
  idsOf: createIds,
})) {
  it.before.each(async (context) => {
    Object.assign(context, await context.market.addTrade({ product_ids: ['7'] }))
    context.recorder = createClickRecorder(context.platform)
  })

  const clickOn = ({ platform, link }: Context, more: Partial<NewClick> = {}): NewClick => ({
    ...{ id: platform.ids.next(), linkId: link.id, tracked: true, kind: 'visit' },
    createdAt: platform.clock.now(),
    ...more,
  })
  const clicksOn = (context: Context, count: number, more: Partial<NewClick> = {}) =>
    Array.from({ length: count }, () => clickOn(context, more))
  /** A click, a second after the one before. */
  const follow = async (context: Context, more: Partial<NewClick> = {}) => {
    context.clock.pass(SECOND)
    await context.recorder.record(clickOn(context, more))
  }
  const followTimes = async (context: Context, times: number, more: Partial<NewClick> = {}) => {
    for (let n = 0; n < times; n += 1) await follow(context, more)
  }
  /** With `before` in front of each write. */
  const writing = (platform: Platform, before: () => Promise<void>): Platform => {
    const { database } = platform
    const executeBatch: typeof database.executeBatch = (...statements) =>
      before().then(() => database.executeBatch(...statements))
    return { ...platform, database: { ...database, executeBatch } }
  }
  const counted = async ({
    platform: { database, ids },
    link: { id },
  }: {
    platform: Platform
    link: LinkRecord
  }) => (await countVisits(database.reader, [id, ids.next()])).get(id) ?? { all: 0, unique: 0 }
  const visits = async (context: Context) => (await counted(context)).all

  it('has each click on disk when it answers, in a few transactions', async (context) => {
    const { platform } = context
    let transactions = 0
    const recorder = createClickRecorder(
      writing(platform, async () => {
        transactions += 1
      }),
    )
    await Promise.all(clicksOn(context, 600).map((click) => recorder.record(click)))
    await recorder.idle()
    assert.equal([await countOf(platform.database.reader.selectFrom('clicks')), transactions], [600, 3])
  })

  it('refuses more than it can hold at once', async (context) => {
    const { recorder } = context
    const results = await Promise.allSettled(clicksOn(context, 4097).map((click) => recorder.record(click)))
    const [refused, ...others] = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason] : [],
    )
    assert.ok(refused instanceof Refusal && refused.code === 'unavailable')
    assert.equal([others, await visits(context)], [[], 4096])
  })

  it('counts tracked visits only, the same around and during roll-ups', async (context) => {
    const { platform } = context
    const rolledUp = async () => (await rowsOf(platform, 'click_counts', {}, 'link_id'))[0]?.clicks
    assert.is(await visits(context), 0)
    await followTimes(context, 12)
    for (const kind of ['bot', 'prefetch', 'head'] as const) await follow(context, { kind })
    await follow(context, { tracked: false })
    assert.is(await visits(context), 12)
    await rollUpClicks(platform)
    assert.equal([await rolledUp(), await visits(context)], [12, 12])
    await followTimes(context, 3)
    await Promise.all([rollUpClicks(platform), rollUpClicks(platform), rollUpClicks(platform)])
    assert.equal([await rolledUp(), await visits(context)], [15, 15])
    for (let n = 16; n < 56; n += 1) {
      await follow(context)
      const [, count] = await Promise.all([rollUpClicks(platform), visits(context)])
      assert.is(count, n)
    }
  })

  it('counts what a clock that is behind dates back', async (context) => {
    const { market, clock, platform, recorder } = context
    await recorder.record(clickOn(context))
    await rollUpClicks(platform)
    for (const behind of [15 * SECOND, HOUR, 30 * DAY]) {
      clock.pass(-behind)
      await recorder.record(clickOn(context))
      clock.pass(behind)
    }
    assert.is(await visits(context), 4)
    for (const _ of [1, 2]) {
      await rollUpClicks(platform)
      assert.is(await visits(context), 4)
    }
    await market.verify()
  })

  it('counts a visitor of a link once an hour, the same around roll-ups', async (context) => {
    const { clock, platform, link } = context
    await follow(context, PHONE)
    await followTimes(context, 3, { ...PHONE, kind: 'bot' })
    await follow(context, { ...PHONE, tracked: false })
    await followTimes(context, 3, PHONE)
    for (const other of [
      { agent: 'Other phone' },
      { address: '203.0.113.8' },
      { address: '::ffff:203.0.113.7' },
      { address: undefined },
      { linkId: platform.ids.next() },
    ])
      await follow(context, { ...PHONE, ...other })
    assert.equal(await counted(context), { all: 8, unique: 4 })
    clock.pass(HOUR - 13 * SECOND)
    await follow(context, PHONE)
    assert.equal(await counted(context), { all: 9, unique: 5 })
    await rollUpClicks(platform)
    assert.equal(await counted(context), { all: 9, unique: 5 })
    await follow(context, PHONE)
    clock.pass(60 * SECOND)
    await rollUpClicks(platform)
    assert.equal(await counted(context), { all: 10, unique: 5 })
    const kept = await rowsOf(platform, 'click_counts', { link_id: link.id }, 'link_id')
    assert.equal(kept, [{ link_id: link.id, clicks: 10, unique_clicks: 5 }])
    const logged = await columnsOf(platform, 'clicks', ['tracked', 'kind', 'repeated'])
    const repeats = logged.filter(({ repeated }) => repeated === 1)
    assert.equal([logged.length, repeats.length], [15, 5])
    assert.ok(repeats.every(({ tracked, kind }) => tracked && kind === 'visit'))
  })

  it('counts visitors of two processes once on PostgreSQL', async (context) => {
    const { market, clock, platform } = context
    if (platform.database.dialect === 'sqlite') return
    const recorders = [createClickRecorder(platform), createClickRecorder({ ...platform })]
    for (const recorder of recorders) await recorder.idle()
    const visitAll = async () => {
      for (let visitor = 0; visitor < 50; visitor += 1) {
        const address = `203.0.113.${visitor}`
        for (const recorder of recorders) await recorder.record(clickOn(context, { address }))
      }
      await Promise.all(recorders.map((recorder) => recorder.idle()))
    }
    await visitAll()
    assert.equal(await counted(context), { all: 100, unique: 50 })
    await rollUpClicks(platform)
    assert.equal(await counted(context), { all: 100, unique: 50 })
    clock.pass(HOUR)
    await visitAll()
    await rollUpClicks(platform)
    assert.equal(await counted(context), { all: 200, unique: 100 })
    await market.verify()
  })

  it('counts one of many visits of one visitor that come at once', async (context) => {
    const { recorder } = context
    const visitor = { address: '2001:db8:1:2::1', agent: 'Phone' }
    await Promise.all(clicksOn(context, 600, visitor).map((click) => recorder.record(click)))
    assert.equal(await counted(context), { all: 600, unique: 1 })
  })

  it('counts a visitor whose first visit was lost at the next one', async (context) => {
    let writes = 0
    const gate = Promise.withResolvers<void>()
    const breaking = writing(context.platform, async () => {
      writes += 1
      if (writes > 1) return
      await gate.promise
      throw new Error('disk gone')
    })
    const recorder = createClickRecorder(breaking)
    const visit = () => recorder.record(clickOn(context, PHONE))
    const lost = visit()
    await eventually(() => writes > 0)
    const next = visit()
    gate.resolve()
    assert.is((await Promise.allSettled([lost]))[0]?.status, 'rejected')
    await next
    assert.equal(await counted(context), { all: 1, unique: 1 })
    context.clock.pass(SECOND)
    await visit()
    assert.equal(await counted(context), { all: 2, unique: 1 })
  })

  it('finds the locked terms behind tracking references', async (context) => {
    const { platform, link, recorder } = context
    const [tracked, untracked] = [clickOn(context), clickOn(context, { tracked: false })]
    await Promise.all([recorder.record(tracked), recorder.record(untracked)])
    const strangers = ['', 'x', "'; drop table clicks", '\0', platform.ids.next(), tracked.id.toUpperCase()]
    const { database, keys } = platform
    const found = await linksOfClicks(database.reader, keys, [tracked.id, untracked.id, ...strangers])
    assert.equal([...found.keys()].sort(), [tracked.id, untracked.id].sort())
    const { id, slug, merchant_id, offer_id, creator_id, created_at: locked_at } = link
    assert.equal(found.get(tracked.id), {
      click: { id: tracked.id, created_at: tracked.createdAt, tracked: true },
      link: {
        ...{ id, slug, merchant_id, offer_id, creator_id, locked_at },
        ...{ commission_rate: 1250, attribution_window_days: 30, product_ids: ['7'] },
      },
    })
    assert.is(found.get(untracked.id)?.click.tracked, false)
    assert.is((await linksOfClicks(database.reader, keys, [])).size, 0)
  })

  it('takes old clicks away where a retention time is set, keeps the counts, and the books stay right', async (context) => {
    const { market, platform, clock, shop, link } = context
    const ids = async () => (await rowsOf(platform, 'clicks')).map(({ id }) => id)
    await market.sell(shop, link, 100_000)
    await enforceClickRetention(platform)
    clock.set('2090-06-15T00:00:00.000Z')
    const config = { ...platform.config, CLICK_RETENTION_DAYS: 0 }
    assert.is(await enforceClickRetention({ ...platform, config }), 0)
    const young = await market.click(link)
    assert.is((await ids()).length, 2)
    await enforceClickRetention(platform)
    assert.equal(await ids(), [young])
    assert.ok((await clicksPrunedBefore(platform.database.reader)) < young)
    assert.is(await visits(context), 2)
    await rollUpClicks(platform)
    assert.is(await visits(context), 2)
    await market.verify()
    assert.is(await enforceClickRetention(platform), 0)
  })

  it('still misses a click that is too young to have been taken away', async ({
    market,
    platform,
    shop,
    link,
  }) => {
    await market.sell(shop, link, 100_000)
    await platform.database.transaction((tx) => tx.deleteFrom('clicks').execute())
    const error = await market.verify().catch((reason: assert.Assertion) => reason)
    assert.match(String(error?.actual), 'does not exist')
  })

  it.run()
}
