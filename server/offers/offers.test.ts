import * as assert from 'uvu/assert'
import type { Actor } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { connectStore } from '../stores/stores.service.ts'
import { addLiveOffer, addMerchant } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { addUser, outcomeOf, requestOf } from '../test/testkit/people.ts'
import { pluckAll } from '../test/testkit/pluck.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { MINUTE } from '../test/testkit/testbed.ts'
import { offersRouter } from './offers.procedures.ts'
import { vetOffer } from './offers.service.ts'

const DRAFT = {
  title: 'Lawn kurta',
  product_url: 'https://kurta.pk/products/lawn',
  category: 'Fashion',
  niche: 'Lawn',
  commission_rate: 12.5,
}

const as = (platform: Platform, actor: Actor | null) => offersRouter.createCaller(requestOf(platform, actor))

interface Context {
  merchant: Actor
  offers: ReturnType<typeof as>
  visitor: ReturnType<typeof as>
}

for (const { it } of marketSuites<Context>('offers')) {
  it.before.each(async (context) => {
    context.merchant = await addMerchant(context.platform, 'Kurta House')
    context.offers = as(context.platform, context.merchant)
    context.visitor = as(context.platform, null)
  })

  it('creates a draft with the defaults of the contract', async ({ merchant, offers }) => {
    const made = await offers.create(DRAFT)
    const { id, ...rest } = made
    const at = '2026-11-01T07:00:00.000Z'
    assert.equal(rest, {
      merchant: { id: merchant.userId, display_name: 'Kurta House' },
      ...{ ...DRAFT, description: null, image_url: null, attribution_window_days: 30, product_ids: null },
      ...{ status: 'draft', vetting: 'not_required', vetting_reason: null, paid_rate_90d: null },
      ...{ created_at: at, updated_at: at },
    })
    assert.equal(await offers.get({ id }), made)
  })

  it('refuses fields out of bounds, and private addresses', async ({ offers }) => {
    const refused = {
      commission_rate: [0, 90.01, 1.234],
      title: [' ', 'x'.repeat(201)],
      category: ['x'.repeat(61)],
      niche: ['a\0b'],
      description: ['x'.repeat(5001)],
      attribution_window_days: [0, 366],
      product_ids: [[], ['gid://1']],
      product_url: ['http://kurta.pk/x', 'https://127.0.0.1/x', 'https://user:pass@kurta.pk/x'],
      image_url: ['https://localhost/x.png'],
    }
    for (const [field, values] of Object.entries(refused))
      for (const value of values) {
        const outcome = await outcomeOf(offers.create({ ...DRAFT, [field]: value }))
        assert.is(outcome, 'validation_failed', `${field} ${value}`)
      }
  })

  it('shows live offers to all, others to their owner and admins', async ({ platform, offers, visitor }) => {
    const { id } = await offers.create(DRAFT)
    const others = [await addUser(platform, 'creator'), await addMerchant(platform)]
    const strangers = [visitor, ...others.map((actor) => as(platform, actor))]
    const admin = as(platform, await addUser(platform, 'admin'))
    for (const status of ['draft', 'live', 'paused', 'ended'] as const) {
      if (status !== 'draft') await offers.setStatus({ id, status })
      assert.is((await offers.get({ id })).status, status)
      assert.is((await admin.get({ id })).status, status)
      for (const stranger of strangers) {
        assert.is(await outcomeOf(stranger.get({ id })), status === 'live' ? 'ok' : 'not_found')
        assert.is((await stranger.list({})).items.length, status === 'live' ? 1 : 0)
      }
    }
    assert.is(await outcomeOf(offers.get({ id: platform.ids.next() })), 'not_found')
    assert.is(await outcomeOf(offers.get({ id: 'x' })), 'validation_failed')
  })

  it('moves along the allowed ways, with a store only', async ({ platform }) => {
    const merchant = await addUser(platform, 'merchant')
    const offers = as(platform, merchant)
    const { id } = await offers.create(DRAFT)
    assert.is(await outcomeOf(offers.setStatus({ id, status: 'live' })), 'conflict')
    assert.is(await outcomeOf(offers.setStatus({ id, status: 'ended' })), 'illegal_transition')
    await connectStore(platform, merchant.userId, { shop_domain: 'a.pk', webhook_secret: 'secret-one' })
    for (const status of ['draft', 'live', 'ended'] as const)
      assert.is((await offers.setStatus({ id, status })).status, status)
    assert.is(await outcomeOf(offers.update({ id, title: 'x' })), 'conflict')
  })

  it('edits what is given and leaves the rest', async ({ bed, offers }) => {
    const made = await offers.create({ ...DRAFT, description: 'old', product_ids: ['1', '2'] })
    assert.equal(await offers.update({ id: made.id }), made)
    bed.clock.pass(MINUTE)
    const change = { description: null, product_url: 'https://kurta.pk/ü', commission_rate: 15 }
    const edited = await offers.update({ id: made.id, ...change })
    const product_url = 'https://kurta.pk/%C3%BC'
    assert.equal(edited, { ...made, ...change, product_url, updated_at: '2026-11-01T07:01:00.000Z' })
    assert.equal(await offers.get({ id: made.id }), edited)
    assert.equal((await offers.update({ id: made.id, product_ids: null })).product_ids, null)
    const badUrl = offers.update({ id: made.id, product_url: 'ftp://kurta.pk' })
    assert.is(await outcomeOf(badUrl), 'validation_failed')
  })

  it('asks for a vetting of high rates before they are live', async ({ platform, offers }) => {
    const actor = (await addUser(platform, 'admin')).userId
    const { id } = await offers.create({ ...DRAFT, commission_rate: 40 })
    assert.is((await offers.get({ id })).vetting, 'pending')
    assert.is(await outcomeOf(offers.setStatus({ id, status: 'live' })), 'vetting_required')
    const vetting = { offerId: id, actor, reason: 'known shop' }
    await vetOffer(platform, { ...vetting, decision: 'reject' })
    assert.is(await outcomeOf(offers.setStatus({ id, status: 'live' })), 'vetting_required')
    const vetted = await vetOffer(platform, { ...vetting, decision: 'approve', commissionRate: 4000 })
    assert.is(vetted.vetting, 'approved')
    await vetOffer(platform, { ...vetting, decision: 'approve', reason: null })
    await offers.setStatus({ id, status: 'live' })
    assert.is(await outcomeOf(offers.update({ id, commission_rate: 40.01 })), 'vetting_required')
    assert.is((await offers.update({ id, commission_rate: 39 })).vetting, 'approved')
    assert.is((await offers.update({ id, commission_rate: 40 })).vetting, 'approved')
    await offers.setStatus({ id, status: 'paused' })
    assert.is((await offers.update({ id, commission_rate: 50 })).vetting, 'pending')
    assert.is(await outcomeOf(offers.setStatus({ id, status: 'live' })), 'vetting_required')

    const audit = await rowsOf(platform, 'audit_entries', { action: 'offer.vet' })
    const after = (vetting: string) => `{"vetting":"${vetting}","vetted_rate":4000,"status":"draft"}`
    assert.equal(
      pluckAll(audit, 'actor', 'subject_id', 'reason', 'after'),
      ['rejected', 'approved'].map((verdict) => [actor, id, 'known shop', after(verdict)]),
    )
  })

  it('pauses a rejected live offer until it is approved', async ({ platform, merchant, offers, visitor }) => {
    const admin = await addUser(platform, 'admin')
    const offer = await addLiveOffer(platform, merchant, { commission_rate: 1250 })
    const vetting = { offerId: offer.id, actor: admin.userId, reason: 'counterfeit' }
    const reject = { ...vetting, decision: 'reject' } as const
    const rejected = await vetOffer(platform, reject)
    assert.equal([rejected.status, rejected.vetting], ['paused', 'rejected'])
    const seen = await offers.get({ id: offer.id })
    assert.equal([seen.status, seen.vetting, seen.vetting_reason], ['paused', 'rejected', 'counterfeit'])
    assert.is(await outcomeOf(visitor.get({ id: offer.id })), 'not_found')
    assert.equal((await visitor.list({})).items, [])

    for (const commission_rate of [1, 12.5, 40]) {
      await offers.update({ id: offer.id, commission_rate })
      assert.is(await outcomeOf(offers.setStatus({ id: offer.id, status: 'live' })), 'vetting_required')
    }
    await offers.update({ id: offer.id, commission_rate: 12.5 })
    await vetOffer(platform, { ...reject, decision: 'approve', reason: 'checked with the brand' })
    const live = await offers.setStatus({ id: offer.id, status: 'live' })
    assert.equal([live.status, live.vetting, live.vetting_reason], ['live', 'not_required', null])

    const again = await vetOffer(platform, reject)
    const repeated = await vetOffer(platform, reject)
    assert.equal([again.status, repeated.updated_at], ['paused', again.updated_at])
  })

  it('drops the public offers only for a visible change, and redirect targets only when visitors must go elsewhere', async ({
    platform,
    merchant,
    offers,
  }) => {
    const dropped = new Set<string | null>()
    platform.caches.onInvalidation((name) => dropped.add(name))
    const { id } = await offers.create(DRAFT)
    const update = (fields: object) => () => offers.update({ id, ...fields })
    const to = (status: 'live' | 'paused' | 'ended') => () => offers.setStatus({ id, status })
    const vet = (decision: 'approve' | 'reject') => () =>
      vetOffer(platform, { offerId: id, actor: merchant.userId, decision, reason: null })
    const [none, list, both] = [[], ['offers'], ['offers', 'slug']]
    const [draft, other] = ['https://kurta.pk/draft', 'https://kurta.pk/other']
    const same = { title: 'Live', commission_rate: 5, product_ids: null, product_url: draft }
    for (const [drops, what, work] of [
      [none, 'another draft', () => offers.create(DRAFT)],
      [none, 'a draft has no links', update({ title: 'Draft', commission_rate: 5, product_url: draft })],
      [none, 'a vetting of the draft', vet('approve')],
      [list, 'it goes live', to('live')],
      [list, 'a change', update({ title: 'Live' })],
      [none, 'the values that it has', update(same)],
      [none, 'no values', update({})],
      [none, 'the status that it has', to('live')],
      [list, 'one of several values', update({ ...same, product_ids: ['1'] })],
      [both, 'another page', update({ product_url: other })],
      [none, 'approved', vet('approve')],
      [none, 'vetted so already', vet('approve')],
      [both, 'it is paused', vet('reject')],
      [none, 'approved again', vet('approve')],
      [both, 'it goes live again', to('live')],
      [both, 'paused by its merchant', to('paused')],
      [none, 'a change of a paused one', update({ title: 'Paused' })],
      [['slug'], 'another page of a paused one', update({ product_url: draft })],
      [['slug'], 'its end', to('ended')],
    ] as const) {
      dropped.clear()
      await work()
      assert.equal([...dropped].sort(), drops, what)
    }
  })

  it('lists only what a caller may see, and refuses the cursor of another sort', async (context) => {
    const { platform, offers, visitor } = context
    const { id } = await offers.create(DRAFT)
    await offers.create({ ...DRAFT, title: 'Other' })
    await offers.setStatus({ id, status: 'live' })
    await addLiveOffer(platform, context.merchant)
    assert.is((await offers.list({ mine: true })).items.length, 3)
    assert.is(await outcomeOf(visitor.list({ status: 'draft' })), 'validation_failed')
    assert.is((await visitor.list({ status: 'live' })).items.length, 2)
    const cursor = (await visitor.list({ limit: 1 })).next_cursor ?? ''
    assert.is(await outcomeOf(visitor.list({ cursor })), 'ok')
    assert.is(await outcomeOf(visitor.list({ sort: 'commission_asc', cursor })), 'validation_failed')
    for (const wrong of [{ limit: 101 }, ...[-1, 100.01, 12.345].map((rate) => ({ paid_rate_min: rate }))])
      assert.is(await outcomeOf(visitor.list(wrong)), 'validation_failed', JSON.stringify(wrong))
  })

  it.run()
}
