import * as assert from 'uvu/assert'
import { APPLICATION_QUOTA, applyToOffer } from '../applications/applications.service.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import { createOffer, DRAFT_QUOTA, setOfferStatus } from '../offers/offers.service.ts'
import { insertRows } from '../platform/database/protected-rows.ts'
import { MAX_OPEN_REQUESTS, requestCredit } from '../sales/credit-request.service.ts'
import { removeStore } from '../stores/remove-store.service.ts'
import { MAX_SECRETS_TAKEN } from '../stores/store-secrets.service.ts'
import { connectStore, MAX_STORES, rotateSecret } from '../stores/stores.service.ts'
import { addLiveOffer, OFFER } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { addOffers, offerOf } from '../test/testkit/offer-rows.ts'
import { addUser, outcomeOf } from '../test/testkit/people.ts'
import { rowOf, rowsOf } from '../test/testkit/rows.ts'
import { DAY } from '../test/testkit/testbed.ts'

/** How often each outcome came. */
async function outcomes(works: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const words = await Promise.all(works.map(outcomeOf))
  return Object.fromEntries([...Map.groupBy(words, (word) => word)].map(([word, all]) => [word, all.length]))
}

let counter = 0
const newStore = (name = `s${++counter}`) => ({
  shop_domain: `${name}.myshopify.com`,
  webhook_secret: `the secret of ${name}`,
})
const wish = { message: null, promotion_url: null }

for (const { it } of marketSuites('quotas')) {
  it(`allow ${MAX_STORES} stores, also when more come at once or one comes back`, async ({ platform }) => {
    const { userId } = await addUser(platform, 'merchant')
    const removed = await connectStore(platform, userId, newStore('removed'))
    await removeStore(platform, userId, removed.id)
    const first = await connectStore(platform, userId, newStore())
    for (let index = 2; index < MAX_STORES; index += 1) await connectStore(platform, userId, newStore())
    assert.equal(await outcomes([1, 2, 3, 4].map(() => connectStore(platform, userId, newStore()))), {
      ok: 1,
      quota_exceeded: 3,
    })
    const again = () => outcomeOf(connectStore(platform, userId, newStore('removed')))
    assert.is(await again(), 'quota_exceeded')
    const stranger = await addUser(platform, 'merchant')
    assert.is(await outcomeOf(connectStore(platform, stranger.userId, newStore())), 'ok')
    await removeStore(platform, userId, first.id)
    assert.is(await again(), 'ok')
  })

  it('leave what an account has beyond them', async ({ platform }) => {
    const { userId } = await addUser(platform, 'merchant')
    const rows = Array.from({ length: MAX_STORES + 2 }, () => ({
      ...{ id: platform.ids.next(), merchant_id: userId, shop_domain: newStore().shop_domain },
      ...{ created_at: platform.clock.now(), connected_at: 0, removed_at: null, released_at: null },
      ...{ first_event_at: null, last_refused_at: null, last_refusal: null },
      ...{ refused_since: null, refused_count: 0, rejecting_sent_at: null },
    }))
    await platform.database.transaction((tx) => insertRows(tx, 'stores', rows))
    assert.is(await outcomeOf(connectStore(platform, userId, newStore())), 'quota_exceeded')
    const rotation = rotateSecret(platform, userId, rows[0]?.id ?? '', { secret: 'another secret here' })
    assert.is(await outcomeOf(rotation), 'ok')
  })

  it(`allow ${DRAFT_QUOTA.most} drafts`, async ({ market, platform }) => {
    const { actor } = await market.addShop()
    const drafts = Array.from({ length: DRAFT_QUOTA.most - 1 }, () =>
      offerOf(platform, actor.userId, { status: 'draft' }),
    )
    await addOffers(platform, drafts)
    const draft = () => createOffer(platform, actor.userId, OFFER)
    assert.equal(await outcomes([draft(), draft(), draft()]), { ok: 1, quota_exceeded: 2 })
    const { id } = await rowOf(platform, 'offers', { merchant_id: actor.userId })
    await setOfferStatus(platform, actor.userId, id, 'live')
    assert.is(await outcomeOf(draft()), 'ok', 'live offers do not count')
  })

  it(`allow ${APPLICATION_QUOTA.most} applications within 24 hours`, async ({ market, platform }) => {
    const { clock } = market
    const shop = await market.addShop()
    const creator = await market.addCreator()
    const offers: { id: string }[] = []
    for (let index = 0; index < 4; index += 1) offers.push(await addLiveOffer(platform, shop.actor))
    const created_at = clock.now() - 1000
    const rejected = Array.from({ length: APPLICATION_QUOTA.most - 1 }, () => ({
      ...{ id: platform.ids.next(), status: 'rejected' as const, created_at, decided_at: created_at },
      ...{ offer_id: offers[0]?.id ?? '', merchant_id: shop.merchantId, creator_id: creator.userId },
      ...{ ...wish, decision_reason: null },
    }))
    await platform.database.transaction((tx) => insertRows(tx, 'applications', rejected))
    const apply = (offerId: string) => applyToOffer(platform, creator.userId, offerId, wish)
    assert.equal(await outcomes(offers.map(({ id }) => apply(id))), { ok: 1, quota_exceeded: 3 })
    clock.pass(DAY - 1000)
    const waiting = await Promise.all(offers.map(({ id }) => outcomeOf(apply(id))))
    assert.equal(waiting.sort(), ['already_applied', 'ok', 'ok', 'ok'])
  })

  it(`allow ${MAX_OPEN_REQUESTS} credit requests that wait`, async ({ market, platform }) => {
    const [shop, other] = [await market.addShop('one'), await market.addShop('two')]
    const creator = await market.addCreator()
    const [link, othersLink] = [await market.addLink(shop, creator), await market.addLink(other, creator)]
    for (let index = 0; index < 3; index += 1) await market.order(shop, link, 100_000)
    await market.order(other, othersLink, 100_000)
    await market.drainUntilIdle()
    const own = await rowsOf(platform, 'sales', { merchant_id: shop.merchantId })
    await platform.database.transaction(async (tx) => {
      for (let index = 1; index < MAX_OPEN_REQUESTS; index += 1) {
        await raiseFlag(platform, tx, {
          kind: 'credit_request',
          subjectType: 'sale',
          subjectId: platform.ids.next(),
          summary: 'A merchant asks for a credit.',
          evidence: { merchant_id: shop.merchantId, amount: '1.00', reason: 'x' },
        })
      }
    })
    const ask = (merchantId: string, saleId: string) =>
      requestCredit(platform, merchantId, { saleId, amount: 100, reason: 'returned' })
    const answers = await Promise.all(own.map(({ id }) => outcomeOf(ask(shop.merchantId, id))))
    assert.equal(answers.toSorted(), ['ok', 'quota_exceeded', 'quota_exceeded'])
    const accepted = own[answers.indexOf('ok')]?.id ?? ''
    assert.is(await outcomeOf(ask(shop.merchantId, accepted)), 'ok', 'the same request again')
    const others = await rowOf(platform, 'sales', { merchant_id: other.merchantId })
    assert.is(await outcomeOf(ask(other.merchantId, others.id)), 'ok', 'another merchant')
  })

  it(`answer secret_taken ${MAX_SECRETS_TAKEN} times an hour, and then nothing`, async ({ platform }) => {
    const victim = await addUser(platform, 'merchant')
    const thief = await addUser(platform, 'merchant')
    const taken = newStore()
    await connectStore(platform, victim.userId, taken)
    const own = await connectStore(platform, thief.userId, newStore())
    const guesses = Array.from({ length: MAX_SECRETS_TAKEN + 5 }, (_, index) =>
      index % 2
        ? connectStore(platform, thief.userId, { ...newStore(), webhook_secret: taken.webhook_secret })
        : rotateSecret(platform, thief.userId, own.id, { secret: taken.webhook_secret }),
    )
    assert.equal(await outcomes(guesses), { secret_taken: MAX_SECRETS_TAKEN, rate_limited: 5 })
    assert.is(await outcomeOf(connectStore(platform, thief.userId, newStore())), 'rate_limited')
    const free = rotateSecret(platform, thief.userId, own.id, { secret: 'no one has this one' })
    assert.is(await outcomeOf(free), 'rate_limited')
    const honest = await addUser(platform, 'merchant')
    assert.is(await outcomeOf(connectStore(platform, honest.userId, newStore())), 'ok', 'another account')
  })

  it.run()
}
