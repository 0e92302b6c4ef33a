import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Actor } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { addLiveOffer, addMerchant } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { requestOf } from '../test/testkit/people.ts'
import { updateProfile } from '../users/profile.service.ts'
import { KeptOffers } from './kept-offers.ts'
import { offersRouter } from './offers.procedures.ts'
import { setOfferStatus, updateOffer } from './offers.service.ts'
import { vetOffer } from './vetting.service.ts'

const unit = suite('kept offers')
const PLACE = { id: 'a', updated_at: 1, merchant_name: 'M' }
const SHOWN = { description: null, product_ids: null }

unit('are given back only while change, name and a minute are the same', () => {
  let now = 0
  const kept = new KeptOffers(() => now)
  assert.is(kept.get(PLACE), undefined)
  assert.is(kept.keep(PLACE, SHOWN), SHOWN)
  assert.is(kept.get(PLACE), SHOWN)
  assert.is(kept.get({ ...PLACE, id: 'b' }), undefined)
  assert.is(kept.get({ ...PLACE, updated_at: 2 }), undefined)
  assert.is(kept.get({ ...PLACE, merchant_name: 'N' }), undefined)
  now = 59_999
  assert.is(kept.get(PLACE), SHOWN)
  now = 60_000
  assert.is(kept.get(PLACE), undefined)
})

unit('make room for others: few that are long, many that are short', () => {
  const keepAll = (count: number, description: string) => {
    const kept = new KeptOffers()
    const places = Array.from({ length: count }, (_, index) => ({ ...PLACE, id: `${index}` }))
    for (const place of places) kept.keep(place, { description, product_ids: null })
    return places.filter((place) => kept.get(place)).length
  }
  assert.is(keepAll(12_000, ''), 10_000)
  assert.is(keepAll(2000, 'x'.repeat(5000)), 1111)
})

unit.run()

for (const { it } of marketSuites<{ merchant: Actor }>('kept offers')) {
  it.before.each(async (context) => {
    context.merchant = await addMerchant(context.platform)
  })

  const listed = async (platform: Platform) => {
    const { items } = await offersRouter.createCaller(requestOf(platform, null)).list({})
    return items
  }

  it('show each change at once, several within a millisecond too', async ({ platform, merchant }) => {
    const { id } = await addLiveOffer(platform, merchant, { title: 'First' })
    const before = await listed(platform)
    for (let time = 0; time < 2; time += 1) assert.is((await listed(platform))[0], before[0], 'the kept one')
    for (const title of ['Second', 'Third']) {
      await updateOffer(platform, merchant.userId, id, { title })
      assert.equal(
        (await listed(platform)).map((offer) => offer.title),
        [title],
      )
    }
    await updateProfile(platform, merchant.userId, { displayName: 'Another name' })
    assert.is((await listed(platform))[0]?.merchant.display_name, 'Another name')
    await setOfferStatus(platform, merchant.userId, id, 'paused')
    assert.equal(await listed(platform), [])
  })

  it('show what an admin has said of a rate', async ({ platform, merchant }) => {
    const offer = await addLiveOffer(platform, merchant)
    const commission_rate = platform.config.HIGH_COMMISSION_RATE + 1
    const decide = (decision: 'approve' | 'reject') =>
      vetOffer(platform, { offerId: offer.id, actor: merchant.userId, decision, reason: null })
    await setOfferStatus(platform, merchant.userId, offer.id, 'paused')
    await updateOffer(platform, merchant.userId, offer.id, { commission_rate })
    await decide('approve')
    await setOfferStatus(platform, merchant.userId, offer.id, 'live')
    assert.is((await listed(platform))[0]?.vetting, 'approved')
    await decide('reject')
    assert.equal(await listed(platform), [])
  })

  it('are of one moment, whatever changes while they are looked up', async ({ platform, merchant }) => {
    const low = await addLiveOffer(platform, merchant, { title: 'Low' })
    await addLiveOffer(platform, merchant, { title: 'High' })
    let asked = Number.NEGATIVE_INFINITY
    const reader = platform.database.reader.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        asked += 1
        if (asked === 1) await setOfferStatus(platform, merchant.userId, low.id, 'paused')
        return result
      },
    })
    const between = { ...platform, database: { ...platform.database, reader } }
    for (let time = 0; time < 2; time += 1) assert.is((await listed(between)).length, 2)
    await updateOffer(platform, merchant.userId, low.id, { title: 'Lower' })
    asked = 0
    assert.equal(
      (await listed(between)).map(({ title, status }) => [title, status]),
      [['High', 'live']],
    )
    assert.is(asked, 3, 'the places, the offer that has changed, and the whole list of another moment')
  })

  it.run()
}
