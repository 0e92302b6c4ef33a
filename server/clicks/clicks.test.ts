import * as assert from 'uvu/assert'
import type { LinkRecord } from '../links/links.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { countOf } from '../platform/database/bulk-values.ts'
import { createIds } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { addLink, addLiveOffer, addMerchant } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { addUser } from '../test/testkit/people.ts'
import { columnsOf } from '../test/testkit/rows.ts'
import { HOUR } from '../test/testkit/testbed.ts'
import {
  countVisits,
  createClickRecorder,
  linksOfClicks,
  type NewClick,
  rollUpClicks,
} from './clicks.service.ts'

const SECOND = 1000

interface Context {
  link: LinkRecord
}

for (const { it } of marketSuites<Context>('clicks', { idsOf: createIds })) {
  it.before.each(async (context) => {
    const { platform } = context
    const merchant = await addMerchant(platform)
    const offer = await addLiveOffer(platform, merchant, { product_ids: ['7'] })
    context.link = await addLink(platform, merchant, await addUser(platform, 'creator'), offer.id)
  })

  const clickOn = (platform: Platform, linkId: string, more: Partial<NewClick> = {}): NewClick => ({
    id: platform.ids.next(),
    linkId,
    tracked: true,
    kind: 'visit',
    createdAt: platform.clock.now(),
    ...more,
  })
  /** With `before` in front of each write. */
  const writing = (platform: Platform, before: () => Promise<void>): Platform => {
    const { database } = platform
    const executeBatch: typeof database.executeBatch = (...statements) =>
      before().then(() => database.executeBatch(...statements))
    return { ...platform, database: { ...database, executeBatch } }
  }
  const counted = async ({ database, ids }: Platform, { id }: LinkRecord) =>
    (await countVisits(database.reader, [id, ids.next()])).get(id) ?? { all: 0, unique: 0 }
  const visits = async (platform: Platform, link: LinkRecord) => (await counted(platform, link)).all

  it('has each click on disk when it answers, in a few transactions', async ({ platform, link }) => {
    let transactions = 0
    const recorder = createClickRecorder(
      writing(platform, async () => {
        transactions += 1
      }),
    )
    const clicks = Array.from({ length: 600 }, () => clickOn(platform, link.id))
    await Promise.all(clicks.map((click) => recorder.record(click)))
    await recorder.idle()
    assert.equal([await countOf(platform.database.reader.selectFrom('clicks')), transactions], [600, 3])
  })

  it('refuses more than it can hold at once', async ({ platform, link }) => {
    const recorder = createClickRecorder(platform)
    const records = Array.from({ length: 4097 }, () => recorder.record(clickOn(platform, link.id)))
    const results = await Promise.allSettled(records)
    const refused = results.filter((result) => result.status === 'rejected')
    assert.is(refused.length, 1)
    assert.ok(refused.every(({ reason }) => reason instanceof Refusal && reason.code === 'unavailable'))
    assert.is(await visits(platform, link), 4096)
  })

  it('counts tracked visits only, the same around roll-ups', async ({ bed, platform, link }) => {
    const recorder = createClickRecorder(platform)
    const follow = async (more: Partial<NewClick> = {}) => {
      bed.clock.pass(SECOND)
      await recorder.record(clickOn(platform, link.id, more))
    }
    const rolledUp = async () =>
      (await platform.database.reader.selectFrom('click_counts').select('clicks').executeTakeFirst())?.clicks
    assert.is(await visits(platform, link), 0)
    for (let n = 0; n < 12; n += 1) await follow()
    await follow({ kind: 'bot' })
    await follow({ kind: 'prefetch' })
    await follow({ kind: 'head' })
    await follow({ tracked: false })
    assert.is(await visits(platform, link), 12)
    await rollUpClicks(platform)
    assert.is(await rolledUp(), 12)
    assert.is(await visits(platform, link), 12)
    for (let n = 0; n < 3; n += 1) await follow()
    await Promise.all([rollUpClicks(platform), rollUpClicks(platform), rollUpClicks(platform)])
    assert.is(await rolledUp(), 15)
    assert.is(await visits(platform, link), 15)
  })

  it('counts right while roll-ups run', async ({ bed, platform, link }) => {
    const recorder = createClickRecorder(platform)
    for (let n = 0; n < 40; n += 1) {
      bed.clock.pass(SECOND)
      await recorder.record(clickOn(platform, link.id))
      const [, count] = await Promise.all([rollUpClicks(platform), visits(platform, link)])
      assert.is(count, n + 1)
    }
  })

  it('counts what a clock that is behind dates back', async ({ market, bed, platform, link }) => {
    const recorder = createClickRecorder(platform)
    await recorder.record(clickOn(platform, link.id))
    await rollUpClicks(platform)
    for (const behind of [15 * SECOND, HOUR, 30 * 24 * HOUR]) {
      bed.clock.pass(-behind)
      await recorder.record(clickOn(platform, link.id))
      bed.clock.pass(behind)
    }
    assert.is(await visits(platform, link), 4)
    for (const _ of [1, 2]) {
      await rollUpClicks(platform)
      assert.is(await visits(platform, link), 4)
    }
    await market.verify()
  })

  it('counts a visitor of a link once an hour, the same around roll-ups', async (context) => {
    const { bed, platform, link } = context
    const recorder = createClickRecorder(platform)
    const follow = async (visitor: Partial<NewClick>, linkId = link.id) => {
      bed.clock.pass(SECOND)
      await recorder.record(clickOn(platform, linkId, visitor))
    }
    const phone = { address: '203.0.113.7', agent: 'Phone' }
    const other = { address: '203.0.113.7', agent: 'Other phone' }
    await follow(phone)
    for (let n = 0; n < 3; n += 1) await follow({ ...phone, kind: 'bot' })
    await follow({ ...phone, tracked: false })
    for (let n = 0; n < 3; n += 1) await follow(phone)
    await follow(other)
    await follow({ ...phone, address: '203.0.113.8' })
    await follow({ ...phone, address: '::ffff:203.0.113.7' })
    await follow({ ...phone, address: undefined })
    await follow(phone, platform.ids.next())
    assert.equal(await counted(platform, link), { all: 8, unique: 4 })
    bed.clock.pass(HOUR - 13 * SECOND)
    await follow(phone)
    assert.equal(await counted(platform, link), { all: 9, unique: 5 })
    await rollUpClicks(platform)
    assert.equal(await counted(platform, link), { all: 9, unique: 5 })
    await follow(phone)
    bed.clock.pass(60 * SECOND)
    await rollUpClicks(platform)
    assert.equal(await counted(platform, link), { all: 10, unique: 5 })
    const kept = await platform.database.reader.selectFrom('click_counts').selectAll().execute()
    assert.equal(
      kept.filter(({ link_id }) => link_id === link.id),
      [{ link_id: link.id, clicks: 10, unique_clicks: 5 }],
    )
    const logged = await columnsOf(platform, 'clicks', ['tracked', 'kind', 'repeated'])
    assert.is(logged.length, 15)
    assert.is(logged.filter(({ repeated }) => repeated === 1).length, 5)
    assert.ok(logged.every(({ tracked, kind, repeated }) => repeated === 0 || (tracked && kind === 'visit')))
  })

  it('counts visitors of two processes once on PostgreSQL', async ({ market, bed, platform, link }) => {
    if (platform.database.dialect === 'sqlite') return
    const recorders = [createClickRecorder(platform), createClickRecorder({ ...platform })]
    for (const recorder of recorders) await recorder.idle()
    const visitAll = async () => {
      for (let visitor = 0; visitor < 50; visitor += 1) {
        const address = `203.0.113.${visitor}`
        for (const recorder of recorders) await recorder.record(clickOn(platform, link.id, { address }))
      }
      await Promise.all(recorders.map((recorder) => recorder.idle()))
    }
    await visitAll()
    assert.equal(await counted(platform, link), { all: 100, unique: 50 })
    await rollUpClicks(platform)
    assert.equal(await counted(platform, link), { all: 100, unique: 50 })
    bed.clock.pass(HOUR)
    await visitAll()
    await rollUpClicks(platform)
    assert.equal(await counted(platform, link), { all: 200, unique: 100 })
    await market.verify()
  })

  it('counts one of many visits of one visitor that come at once', async ({ platform, link }) => {
    const recorder = createClickRecorder(platform)
    const visitor = { address: '2001:db8:1:2::1', agent: 'Phone' }
    const clicks = Array.from({ length: 600 }, () => clickOn(platform, link.id, visitor))
    await Promise.all(clicks.map((click) => recorder.record(click)))
    assert.equal(await counted(platform, link), { all: 600, unique: 1 })
  })

  it('counts a visitor whose first visit was lost at the next one', async ({ bed, platform, link }) => {
    let writes = 0
    const gate = Promise.withResolvers<void>()
    const breaking = writing(platform, async () => {
      writes += 1
      if (writes > 1) return
      await gate.promise
      throw new Error('disk gone')
    })
    const recorder = createClickRecorder(breaking)
    const visit = () =>
      recorder.record(clickOn(platform, link.id, { address: '203.0.113.7', agent: 'Phone' }))
    const lost = visit()
    await eventually(() => writes > 0)
    const next = visit()
    gate.resolve()
    assert.is((await Promise.allSettled([lost]))[0]?.status, 'rejected')
    await next
    assert.equal(await counted(platform, link), { all: 1, unique: 1 })
    bed.clock.pass(SECOND)
    await visit()
    assert.equal(await counted(platform, link), { all: 2, unique: 1 })
  })

  it('finds the locked terms behind tracking references', async ({ platform, link }) => {
    const recorder = createClickRecorder(platform)
    const tracked = clickOn(platform, link.id)
    const untracked = clickOn(platform, link.id, { tracked: false })
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

  it.run()
}
