import { type RawBuilder, sql } from 'kysely'
import * as assert from 'uvu/assert'
import { applyToOffer, decideOnApplication } from '../../applications/applications.service.ts'
import { appRouter } from '../../http/router.ts'
import { setCoupon } from '../../links/coupons.service.ts'
import { type LinkRecord, resolveTarget } from '../../links/links.service.ts'
import { LINK_TARGETS, setOfferStatus } from '../../offers/offers.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import { type MarketContext, marketSuites } from '../testkit/market-suites.ts'
import type { Shop } from '../testkit/marketplace.ts'
import { orderBody } from '../testkit/orders.ts'
import { addUser, outcomeOf, requestOf } from '../testkit/people.ts'
import { pluck } from '../testkit/pluck.ts'
import { rowOf, rowsOf } from '../testkit/rows.ts'
import { assertForgeryFlagged, writeWithoutKey } from '../testkit/tamper.ts'
import { HOUR } from '../testkit/testbed.ts'

const refusalOf = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: Error) => error.name,
  )

interface Context {
  shop: Shop
  sana: Actor
  link: LinkRecord
}

for (const { it } of marketSuites<Context>('terms that someone changes in the database')) {
  it.before.each(async (context) => {
    const { market } = context
    context.shop = await market.addShop()
    context.sana = await market.addCreator('Sana')
    context.link = await market.addLink(context.shop, context.sana)
  })

  const salesOf = ({ platform }: MarketContext) => rowsOf(platform, 'sales')
  const write = ({ bed }: MarketContext, statement: RawBuilder<unknown>) =>
    writeWithoutKey(bed.testDatabase.database, statement)
  /** The application of a creator to the offer of the link, and how it is approved. */
  const applied = async ({ platform, shop, link }: MarketContext & Context, creator: Actor) => {
    const wish = { message: null, promotion_url: null }
    const { id } = await applyToOffer(platform, creator.userId, link.offer_id, wish)
    const approval = { decision: 'approve', reason: null } as const
    return { id, approve: () => decideOnApplication(platform, shop.merchantId, id, approval) }
  }

  it('decide no sale by a link, which is neither shown nor followed, until the row is put back', async (context) => {
    const { market, platform, shop, sana, link } = context
    const thief = await market.addCreator('Thief')
    const changes: [RawBuilder<unknown>, RawBuilder<unknown>][] = [
      [sql`commission_rate = 9000`, sql`commission_rate = ${link.commission_rate}`],
      [sql`creator_id = ${thief.userId}`, sql`creator_id = ${sana.userId}`],
      [sql`attribution_window_days = 365`, sql`attribution_window_days = ${link.attribution_window_days}`],
      [sql`product_ids = '["1"]'`, sql`product_ids = null`],
      [sql`ended_at = 5`, sql`ended_at = null`],
      [sql`offer_rate = 100`, sql`offer_rate = null`],
    ]
    const api = appRouter.createCaller(requestOf(platform, null)).links
    for (const [change, back] of changes) {
      const before = (await salesOf(context)).length
      await market.order(shop, link, 100_000)
      await write(context, sql`update affiliate_links set ${change} where id = ${link.id}`)
      await market.drainUntilIdle()
      assert.is((await salesOf(context)).length, before)
      assert.is(await outcomeOf(api.resolve({ slug: link.slug })), 'conflict')
      assert.is(await refusalOf(resolveTarget(platform, link.slug)), 'TamperedRow')
      await assertForgeryFlagged(context.platform, 'affiliate_links')
      await write(context, sql`update affiliate_links set ${back} where id = ${link.id}`)
      await market.after(HOUR)
      assert.is((await salesOf(context)).length, before + 1)
      assert.is((await resolveTarget(platform, link.slug))?.linkId, link.id)
      platform.caches.drop(LINK_TARGETS)
    }
    const rightly = ['accepted', link.commission_rate, sana.userId]
    for (const sale of await salesOf(context))
      assert.equal([sale.acceptance_status, sale.commission_rate, sale.creator_id], rightly)
  })

  it('lock no terms and lead no visitor to an address that the merchant did not give', async (context) => {
    const { platform, link } = context
    const { approve } = await applied(context, await addUser(platform, 'creator'))
    const ofOffer = sql`where id = ${link.offer_id}`
    await write(context, sql`update offers set commission_rate = commission_rate + 1 ${ofOffer}`)
    assert.is(await refusalOf(approve()), 'TamperedRow')
    await assertForgeryFlagged(context.platform, 'offers')
    await write(context, sql`update offers set commission_rate = commission_rate - 1 ${ofOffer}`)
    assert.is((await approve()).link?.commission_rate, link.commission_rate)
    await write(context, sql`update offers set product_url = 'https://elsewhere.example/' ${ofOffer}`)
    assert.is(await refusalOf(resolveTarget(platform, link.slug)), 'TamperedRow')
  })

  it('decide no order with a coupon code by the history of an offer', async (context) => {
    const { market, platform, clock, shop, link } = context
    await setCoupon(platform, { slug: link.slug, actor: shop.merchantId, code: 'SANA10' })
    clock.pass(HOUR)
    await setOfferStatus(platform, shop.merchantId, link.offer_id, 'paused')
    clock.pass(HOUR)
    const ofPause = sql`where offer_id = ${link.offer_id} and status = 'paused'`
    const changed = await rowOf(platform, 'offer_status_changes', { status: 'paused' }, 'sequence')
    const columns = Object.entries(changed)
    const putBack = sql`insert into offer_status_changes (${sql.join(columns.map(([column]) => sql.ref(column)))})
      values (${sql.join(columns.map(([, value]) => value))})`
    const attempts: [RawBuilder<unknown>, RawBuilder<unknown>][] = [
      [sql`delete from offer_status_changes ${ofPause}`, putBack],
      [
        sql`update offer_status_changes set changed_at = changed_at + ${3 * HOUR} ${ofPause}`,
        sql`update offer_status_changes set changed_at = ${changed.changed_at} ${ofPause}`,
      ],
    ]
    const order = { createdAt: clock.now(), price: 100_000, codes: ['SANA10'] }
    for (const [index, [change, back]] of attempts.entries()) {
      await market.deliver(shop, orderBody(order))
      await write(context, change)
      await market.drainUntilIdle()
      assert.is((await salesOf(context)).length, index)
      await assertForgeryFlagged(platform, 'offer_status_changes')
      await write(context, back)
      await market.after(HOUR)
      assert.is((await salesOf(context)).length, index + 1)
    }
    assert.equal(pluck(await salesOf(context), 'acceptance_status'), ['rejected', 'rejected'])
  })

  it('credit no link by a coupon code that someone added', async (context) => {
    const { market, platform, clock, shop, link } = context
    const other = await market.addLink(shop, await market.addCreator())
    await setCoupon(platform, { slug: other.slug, actor: shop.merchantId, code: 'OTHER10' })
    await write(
      context,
      sql`insert into link_coupons (id, link_id, merchant_id, code, starts_at, ends_at, row_digest)
        select ${platform.ids.next()}, ${link.id}, merchant_id, 'SANA10', starts_at, ends_at, row_digest from link_coupons`,
    )
    await market.deliver(shop, orderBody({ createdAt: clock.now(), price: 100_000, codes: ['SANA10'] }))
    await market.drainUntilIdle()
    assert.equal(await salesOf(context), [])
    await assertForgeryFlagged(context.platform, 'link_coupons')
  })

  it('approve no application of another creator', async (context) => {
    const { platform } = context
    const creator = await addUser(platform, 'creator')
    const { id, approve } = await applied(context, creator)
    const thief = await addUser(platform, 'creator')
    await write(context, sql`update applications set creator_id = ${thief.userId} where id = ${id}`)
    assert.is(await refusalOf(approve()), 'TamperedRow')
    await assertForgeryFlagged(context.platform, 'applications')
    await write(context, sql`update applications set creator_id = ${creator.userId} where id = ${id}`)
    assert.is((await approve()).link?.creator_id, creator.userId)
  })

  it.run()
}
