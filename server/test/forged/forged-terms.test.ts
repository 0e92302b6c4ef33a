import { type RawBuilder, sql } from 'kysely'
import * as assert from 'uvu/assert'
import { applyToOffer, decideOnApplication } from '../../applications/applications.service.ts'
import { openFlags } from '../../flags/flags.service.ts'
import { appRouter } from '../../http/router.ts'
import { type LinkRecord, linkOfSlug, resolveTarget } from '../../links/links.service.ts'
import { LINK_TARGETS } from '../../offers/offers.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import type { Digested } from '../../platform/database/protected-tables.ts'
import { eventually } from '../testkit/eventually.ts'
import { type MarketContext, marketSuites } from '../testkit/market-suites.ts'
import type { Shop } from '../testkit/marketplace.ts'
import { addUser, outcomeOf, requestOf } from '../testkit/people.ts'
import { removeTriggers } from '../testkit/tamper.ts'
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
    await removeTriggers(market.bed.testDatabase.database)
  })

  /** A statement of a database writer without APP_KEY. */
  const write = ({ bed }: MarketContext, statement: RawBuilder<unknown>) =>
    statement.execute(bed.testDatabase.database.writer)
  const assertFlagged = ({ platform }: MarketContext, table: Digested) =>
    eventually(
      () => openFlags(platform.database.reader, 'integrity_violation', table),
      ({ length }) => length === 1,
    )
  const salesOf = ({ platform }: MarketContext) =>
    platform.database.reader.selectFrom('sales').select(['commission_rate', 'creator_id']).execute()

  it('decide no sale by a link, which is neither shown nor followed, until the row is put back', async (context) => {
    const { market, platform, shop, sana, link } = context
    const thief = await market.addCreator('Thief')
    const changes: [RawBuilder<unknown>, RawBuilder<unknown>][] = [
      [sql`commission_rate = 9000`, sql`commission_rate = ${link.commissionRate}`],
      [sql`creator_id = ${thief.userId}`, sql`creator_id = ${sana.userId}`],
      [sql`attribution_window_days = 365`, sql`attribution_window_days = ${link.attributionWindowDays}`],
      [sql`product_ids = '["1"]'`, sql`product_ids = null`],
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
      await assertFlagged(context, 'affiliate_links')
      await write(context, sql`update affiliate_links set ${back} where id = ${link.id}`)
      await market.after(HOUR)
      assert.is((await salesOf(context)).length, before + 1)
      assert.is((await resolveTarget(platform, link.slug))?.linkId, link.id)
      platform.caches.clear(LINK_TARGETS)
    }
    for (const sale of await salesOf(context))
      assert.equal(sale, { commission_rate: link.commissionRate, creator_id: sana.userId })
  })

  it('approve no application of another creator', async (context) => {
    const { platform, shop, link } = context
    const creator = await addUser(platform, 'creator')
    const wish = { message: null, promotion_url: null }
    const { id } = await applyToOffer(platform, creator.userId, link.offerId, wish)
    const thief = await addUser(platform, 'creator')
    await write(context, sql`update applications set creator_id = ${thief.userId} where id = ${id}`)
    const approve = () =>
      decideOnApplication(platform, shop.merchantId, id, { decision: 'approve', reason: null })
    assert.is(await refusalOf(approve()), 'TamperedRow')
    await assertFlagged(context, 'applications')
    await write(context, sql`update applications set creator_id = ${creator.userId} where id = ${id}`)
    const approved = await approve()
    assert.is(
      (await linkOfSlug(platform, platform.database.reader, approved.link?.slug ?? ''))?.creatorId,
      creator.userId,
    )
  })

  it.run()
}
