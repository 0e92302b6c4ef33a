import * as assert from 'uvu/assert'
import type { OfferStatus } from '../offers/offer-status.rule.ts'
import {
  createOffer,
  type ShownOffer,
  setOfferStatus,
  updateOffer,
  vetOffer,
} from '../offers/offers.service.ts'
import { type Actor, router } from '../platform/api/procedure.ts'
import { updateRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { addLiveOffer, addMerchant, OFFER } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { addUser, outcomeOf, requestOf, setSuspended } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { MINUTE } from '../test/testkit/testbed.ts'
import { applicationsProcedures } from './applications.procedures.ts'

/** In this process `caller.apply()` would be a function's own `apply`; clients call it by its wire name. */
const { apply, ...others } = applicationsProcedures
const applicationsRouter = router({ ...others, submit: apply })

const as = (platform: Platform, actor: Actor | null) =>
  applicationsRouter.createCaller(requestOf(platform, actor))

/** As if HIGH_COMMISSION_RATE had been lowered below a live offer's rate. */
async function forgetVetting(platform: Platform, offerId: string): Promise<void> {
  await platform.database.transaction((tx) =>
    updateRows(tx, 'offers', { id: offerId }, { vetting_verdict: null, vetted_rate: null }),
  )
}

interface Context {
  merchant: Actor
  creator: Actor
  offer: ShownOffer
  /** What the two call. */
  shop: ReturnType<typeof as>
  applicant: ReturnType<typeof as>
}

for (const { it } of marketSuites<Context>('applications')) {
  it.before.each(async (context) => {
    const { platform } = context
    context.merchant = await addMerchant(platform)
    context.creator = await addUser(platform, 'creator', 'Ayesha')
    context.offer = await addLiveOffer(platform, context.merchant, { product_ids: ['12', '34'] })
    context.shop = as(platform, context.merchant)
    context.applicant = as(platform, context.creator)
  })

  const links = (platform: Platform) => rowsOf(platform, 'affiliate_links')

  it('takes an application and approves it into a link with the terms of that moment', async (context) => {
    const { clock, platform, merchant, creator, offer, shop, applicant } = context
    const input = { id: offer.id, message: 'Hello\nthere', promotion_url: 'https://instagram.com/ayesha' }
    const made = await applicant.submit(input)
    assert.equal(made, {
      ...{ id: made.id, offer_id: offer.id, offer: { id: offer.id, title: offer.title } },
      creator: { id: creator.userId, display_name: 'Ayesha' },
      ...{ status: 'pending', message: 'Hello\nthere', promotion_url: 'https://instagram.com/ayesha' },
      ...{ locked_commission_rate: null, affiliate_link: null, decision_reason: null, decided_at: null },
      created_at: '2026-11-01T07:00:00.000Z',
    })
    clock.pass(MINUTE)
    const approved = await shop.decide({ id: made.id, decision: 'approve', reason: 'welcome' })
    const { affiliate_link, ...rest } = approved
    assert.equal(
      { ...rest, affiliate_link: null },
      {
        ...{ ...made, status: 'approved', locked_commission_rate: 12.5, decision_reason: 'welcome' },
        decided_at: '2026-11-01T07:01:00.000Z',
      },
    )
    assert.match(affiliate_link?.slug ?? '', /^[2-9a-hjkmnp-z]{10}$/)
    assert.is(affiliate_link?.url, `http://127.0.0.1:3000/go/${affiliate_link?.slug}`)

    const change = { commission_rate: 500, attribution_window_days: 7, product_ids: null }
    await updateOffer(platform, merchant.userId, offer.id, change)
    const { decide } = shop
    const approval = { id: made.id, decision: 'approve' } as const
    for (const same of [approval, { ...approval, reason: 'welcome' }])
      assert.equal(await decide(same), approved)
    for (const different of [
      { reason: 'other' },
      { coupon_code: 'AYESHA10' },
      { decision: 'reject' as const },
    ])
      assert.is(await outcomeOf(decide({ ...approval, ...different })), 'already_decided')
    const [link, ...more] = await links(platform)
    assert.equal(more, [])
    const { commission_rate, attribution_window_days, product_ids } = link ?? {}
    assert.equal([commission_rate, attribution_window_days, product_ids], [1250, 30, '["12","34"]'])
  })

  it('takes applications for live offers of active merchants only', async (context) => {
    const { platform, merchant, offer, applicant } = context
    const outcome = (id = offer.id) => outcomeOf(applicant.submit({ id }))
    assert.is(await outcome(platform.ids.next()), 'not_found')
    assert.is(await outcome((await createOffer(platform, merchant.userId, OFFER)).id), 'not_found', 'a draft')
    await setSuspended(platform, merchant.userId, true)
    assert.is(await outcome(), 'not_found')
    await setSuspended(platform, merchant.userId, false)
    await setOfferStatus(platform, merchant.userId, offer.id, 'paused')
    assert.is(await outcome(), 'offer_not_live')
  })

  it('approves only while the offer is live and its rate vetted; rejects always', async (context) => {
    const { platform, merchant, offer } = context
    const { decide } = context.shop
    const move = (status: OfferStatus) => setOfferStatus(platform, merchant.userId, offer.id, status)
    const { id } = await context.applicant.submit({ id: offer.id })
    await move('paused')
    assert.is(await outcomeOf(decide({ id, decision: 'approve' })), 'offer_not_live')
    await updateOffer(platform, merchant.userId, offer.id, { commission_rate: 4000 })
    const vetting = { offerId: offer.id, actor: 'operator', reason: null }
    await vetOffer(platform, { ...vetting, decision: 'approve' })
    await move('live')
    await forgetVetting(platform, offer.id)
    assert.is(await outcomeOf(decide({ id, decision: 'approve' })), 'vetting_required')
    assert.equal(await links(platform), [])
    await move('ended')
    assert.is(await outcomeOf(decide({ id, decision: 'reject' })), 'ok')
  })

  it('is refused with the wrong input', async (context) => {
    const { platform, offer, shop, applicant } = context
    const { id } = await applicant.submit({ id: offer.id })
    assert.is(await outcomeOf(shop.decide({ id, decision: 'maybe' as 'approve' })), 'validation_failed')
    const { submit } = as(platform, await addUser(platform, 'creator'))
    for (const field of [
      { promotion_url: 'javascript:alert(1)' },
      { promotion_url: 'https://10.0.0.1/x' },
      { message: 'x'.repeat(2001) },
      { message: 'nul\0' },
    ])
      assert.is(await outcomeOf(submit({ id: offer.id, ...field })), 'validation_failed')
  })

  it('locks a rate for one creator, and tells it apart from another answer', async (context) => {
    const { platform, merchant, offer, shop, applicant } = context
    const { id } = await applicant.submit({ id: offer.id })
    const approve = (commission_rate?: number) => shop.decide({ id, decision: 'approve', commission_rate })
    for (const rate of [0, 90.01, 12.345])
      assert.is(await outcomeOf(approve(rate)), 'validation_failed', String(rate))
    const rejection = shop.decide({ id, decision: 'reject', commission_rate: 20 })
    assert.is(await outcomeOf(rejection), 'validation_failed')
    assert.is(await outcomeOf(approve(30.01)), 'vetting_required')
    for (const same of [20, undefined, 20]) assert.is((await approve(same)).locked_commission_rate, 20)
    assert.is(await outcomeOf(approve(12.5)), 'already_decided')
    const [link] = await links(platform)
    assert.equal([link?.commission_rate, link?.offer_rate], [2000, 1250])
    const second = await addLiveOffer(platform, merchant)
    const other = await applicant.submit({ id: second.id })
    await shop.decide({ id: other.id, decision: 'approve', commission_rate: 12.5 })
    assert.is((await links(platform))[1]?.offer_rate, null, "the offer's own rate is not individual")
  })

  it('locks a high rate for one creator once an admin has approved it for the offer', async (context) => {
    const { platform, merchant, offer, shop, applicant } = context
    const { id } = await applicant.submit({ id: offer.id })
    const change = (status: OfferStatus) => setOfferStatus(platform, merchant.userId, offer.id, status)
    const setRate = (rate: number) =>
      updateOffer(platform, merchant.userId, offer.id, { commission_rate: rate })
    await change('paused')
    await setRate(4500)
    await vetOffer(platform, { offerId: offer.id, actor: 'operator', reason: null, decision: 'approve' })
    await setRate(1250)
    await change('live')
    const approve = (commission_rate: number) => shop.decide({ id, decision: 'approve', commission_rate })
    assert.is(await outcomeOf(approve(45.01)), 'vetting_required')
    assert.is((await approve(45)).locked_commission_rate, 45)
  })

  it('lets its creator withdraw a pending application, and apply again', async (context) => {
    const { platform, offer, shop, applicant } = context
    const first = await applicant.submit({ id: offer.id })
    await applicant.withdraw({ id: first.id })
    await applicant.withdraw({ id: first.id })
    const [seen, ...more] = (await shop.list({ status: 'withdrawn' })).items
    assert.equal([seen?.id, more], [first.id, []])
    assert.is(await outcomeOf(shop.decide({ id: first.id, decision: 'approve' })), 'already_decided')
    const second = await applicant.submit({ id: offer.id })
    await shop.decide({ id: second.id, decision: 'approve' })
    assert.is(await outcomeOf(applicant.withdraw({ id: second.id })), 'already_decided')
    const types = ['created', 'withdrawn', 'created', 'decided'].map((event) => `application.${event}`)
    assert.equal(pluck(await rowsOf(platform, 'outbox_events'), 'type'), types)
  })

  it('either withdraws or decides, also at the same moment', async ({ offer, shop, applicant, platform }) => {
    const { id } = await applicant.submit({ id: offer.id })
    const race = [applicant.withdraw({ id }), shop.decide({ id, decision: 'approve' })].map(outcomeOf)
    assert.equal((await Promise.all(race)).sort(), ['already_decided', 'ok'])
    const [decided] = (await shop.list({})).items
    assert.is((await links(platform)).length, decided?.status === 'approved' ? 1 : 0)
  })

  it('lists to each what is theirs, by status and in pages', async (context) => {
    const { platform, merchant, offer, shop, applicant } = context
    const other = await addUser(platform, 'creator')
    const secondOffer = await addLiveOffer(platform, merchant)
    const first = await applicant.submit({ id: offer.id })
    const second = await as(platform, other).submit({ id: offer.id })
    const third = await applicant.submit({ id: secondOffer.id })
    await shop.decide({ id: first.id, decision: 'approve' })
    const ids = (page: { items: { id: string }[] }) => page.items.map((item) => item.id)
    assert.equal(ids(await shop.list({})), [third.id, second.id, first.id])
    assert.equal(ids(await applicant.list({})), [third.id, first.id])
    assert.equal(ids(await applicant.list({ status: 'approved' })), [first.id])
    assert.equal(ids(await shop.listForOffer({ id: offer.id })), [second.id, first.id])
    const pending = await shop.listForOffer({ id: offer.id, status: 'pending' })
    assert.equal(ids(pending), [second.id])
    const page = await shop.list({ limit: 2 })
    const rest = await shop.list({ limit: 2, cursor: page.next_cursor ?? undefined })
    assert.equal(ids(rest), [first.id])
    assert.ok(rest.items[0]?.affiliate_link)
    assert.is(rest.next_cursor, null)
  })

  it('takes one of many applications at the same moment', async ({ offer, applicant }) => {
    const asked = Array.from({ length: 6 }, () => outcomeOf(applicant.submit({ id: offer.id })))
    assert.equal((await Promise.all(asked)).sort(), [...Array(5).fill('already_applied'), 'ok'])
  })

  it.run()
}
