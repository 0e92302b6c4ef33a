// long
import * as assert from 'uvu/assert'
import { grantCredit } from '../billing/credits.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { OFFER } from '../test/testkit/listings.ts'
import { openWebSide, type WebSide } from '../test/testkit/live-followers.ts'
import { type MarketContext, marketSuites } from '../test/testkit/market-suites.ts'
import type { Shop } from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { addUser, logIn, outcomeOf } from '../test/testkit/people.ts'
import { assertNone, pluck, pluckAll } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { columnsOf, rowsOf } from '../test/testkit/rows.ts'
import { type Answer, call } from '../test/testkit/service-bed.ts'
import { HOUR } from '../test/testkit/testbed.ts'
import { OPERATOR } from './audit.service.ts'
import { type FlagKind, raiseFlag } from './flags.service.ts'

interface Person extends Actor {
  token: string
}
interface Context {
  web: WebSide
  shop: Shop
  admin: Person
  merchant: Person
  creator: Person
}
type World = MarketContext & Context
type Body = Record<string, unknown>

for (const { it } of marketSuites<Context>("the admins' routes", { dialects: proofDialects() })) {
  it.before.each(async (world) => {
    const { market, platform } = world
    const withToken = async (actor: Actor): Promise<Person> => {
      const token = await logIn(platform, actor, HOUR)
      return { ...actor, token }
    }
    world.web = await openWebSide(platform)
    world.shop = await market.addShop()
    world.admin = await withToken(await addUser(platform, 'admin'))
    world.merchant = await withToken(world.shop.actor)
    world.creator = await withToken(await market.addCreator())
  })
  it.after.each(({ web }) => web?.close())

  const raise = ({ platform }: World, kind: FlagKind, subjectId: string, evidence: Body = {}) =>
    platform.database.transaction((tx) =>
      raiseFlag(platform, tx, { kind, subjectType: 'user', subjectId, summary: `a ${kind}`, evidence }),
    )
  const queue = async ({ web, admin }: World, query = '') => {
    const answer = await call(web.base, 'GET', `/admin/flagged${query}`, { token: admin.token })
    assert.is(answer.status, 200, JSON.stringify(answer.body))
    return answer.body as { items: Body[]; next_cursor: string | null }
  }
  const post = ({ web }: World, { token }: Person, path: string, body: Body = {}) =>
    call(web.base, 'POST', path, { token, body })
  const codeOf = ({ status, body }: Answer) => `${status} ${body.code ?? ''}`.trim()
  const auditOf = ({ platform }: World, subjectId: string) =>
    columnsOf(platform, 'audit_entries', ['actor', 'action', 'reason'], { subject_id: subjectId })

  it('lists open flags newest first, by kind and severity, in pages', async (world) => {
    const { merchant, creator } = world
    await raise(world, 'self_purchase', creator.userId, { self_purchases: 1 })
    await raise(world, 'self_purchase', creator.userId, { self_purchases: 2 })
    await raise(world, 'self_purchase', merchant.userId)
    await raise(world, 'shared_iban', creator.userId)
    const all = await queue(world)
    const [made, bought] = [creator.userId, merchant.userId]
    assert.equal(pluckAll(all.items, 'kind', 'subject_id'), [
      ['shared_iban', made],
      ['self_purchase', bought],
      ['self_purchase', made],
    ])
    const { id, created_at, ...rest } = all.items[2] as Body
    assert.ok(id && created_at)
    assert.equal(rest, {
      ...{ kind: 'self_purchase', severity: 'medium', subject_type: 'user', subject_id: made },
      ...{ summary: 'a self_purchase', evidence: { self_purchases: 2 } },
      ...{ status: 'open', note: null, resolved_at: null },
    })
    assert.equal((await queue(world, '?kind=shared_iban')).items, [all.items[0]])
    assert.equal((await queue(world, '?severity=medium')).items, all.items.slice(1))
    assert.equal((await queue(world, '?status=resolved')).items, [])
    const first = await queue(world, '?limit=2')
    assert.equal(first.items, all.items.slice(0, 2))
    const second = await queue(world, `?limit=2&cursor=${first.next_cursor}`)
    assert.equal(second, { items: all.items.slice(2), next_cursor: null })
  })

  it('takes a flag off the queue once, with a note and an audit row', async (world) => {
    const { admin, creator } = world
    await raise(world, 'self_purchase', creator.userId)
    const [flag] = (await queue(world)).items as [Body]
    const path = `/admin/flagged/${flag.id}/resolve`
    const resolved = await post(world, admin, path, { note: 'a gift to her mother' })
    assert.is(resolved.status, 200)
    const resolved_at = new Date(world.clock.now()).toISOString()
    assert.equal(resolved.body, { ...flag, status: 'resolved', note: 'a gift to her mother', resolved_at })
    world.clock.pass(1000)
    const again = await post(world, admin, path, { note: 'a gift to her mother' })
    assert.equal(again.body, resolved.body)
    assert.is(codeOf(await post(world, admin, path, { note: 'another' })), '409 already_decided')
    assert.equal((await queue(world)).items, [])
    assert.equal((await queue(world, '?status=resolved')).items, [resolved.body])
    assert.equal(await auditOf(world, String(flag.id)), [
      { actor: admin.userId, action: 'flag.resolve', reason: 'a gift to her mother' },
    ])
    await raise(world, 'self_purchase', creator.userId)
    assert.is((await queue(world)).items.length, 1, 'what happens again is put on the queue again')
  })

  it('puts high commissions on the queue, and takes them off when they are decided', async (world) => {
    const { web, admin, merchant } = world
    const waiting = async () => (await queue(world, '?kind=offer_vetting')).items
    const { title, product_url, category, niche } = OFFER
    const made = { title, product_url, category, niche, commission_rate: 45 }
    const id = String((await post(world, merchant, '/offers', made)).body.id)
    const patch = (body: Body, path = '') =>
      call(web.base, 'PATCH', `/offers/${id}${path}`, { token: merchant.token, body })
    const vet = (body: Body) => post(world, admin, `/admin/offers/${id}/vet`, body)
    const [asked, ...others] = await waiting()
    assert.equal([asked?.subject_id, (asked?.evidence as Body | undefined)?.commission_rate], [id, 45])
    assert.equal(others, [])
    assert.is((await patch({ commission_rate: 20 })).status, 200)
    assert.equal(await waiting(), [])
    await patch({ commission_rate: 50 })
    assert.is((await waiting()).length, 1)

    const [flag] = (await waiting()) as [Body]
    await post(world, admin, `/admin/flagged/${flag.id}/resolve`, { note: 'later' })
    assert.is(codeOf(await patch({ status: 'live' }, '/status')), '409 vetting_required')
    assert.is((await waiting()).length, 1, 'asking to go live asks again')

    assert.is(codeOf(await vet({ decision: 'approve', commission_rate: 45 })), '409 conflict')
    const approved = await vet({ decision: 'approve', commission_rate: 50, reason: 'a launch' })
    assert.equal([approved.status, approved.body.vetting], [200, 'approved'])
    assert.is((await vet({ decision: 'approve', reason: 'a launch' })).status, 200)
    assert.is(codeOf(await vet({ decision: 'approve', reason: 'another' })), '409 already_decided')
    assert.equal(await waiting(), [])
    const audit = { actor: admin.userId, action: 'offer.vet', reason: 'a launch' }
    assert.equal(await auditOf(world, id), [audit])
    assert.is((await patch({ status: 'live' }, '/status')).status, 200)
    assert.is((await vet({ decision: 'reject' })).body.vetting, 'rejected')
    assert.is(codeOf(await patch({ status: 'live' }, '/status')), '409 vetting_required')
    assert.equal(await waiting(), [], 'a rejection is a decision')
    await patch({ commission_rate: 40 })
    assert.is((await waiting()).length, 1, 'below it the question is open again')
    await patch({ status: 'ended' }, '/status')
    assert.equal(await waiting(), [])
  })

  it('takes a request for a credit, and moves no money', async (world) => {
    const { merchant } = world
    const { accepted } = await sell(world)
    const path = `/sales/${accepted}/credit-request`
    const wish = { amount: '137.50', reason: 'The parcel came back.' }
    const asked = await post(world, merchant, path, wish)
    assert.is(asked.status, 202)
    const { flag_id, ...stored } = asked.body
    const created_at = new Date(world.clock.now()).toISOString()
    const pending = { status: 'pending', granted_amount: null, created_at, decided_at: null }
    assert.equal(stored, { sale_id: accepted, ...wish, currency: 'PKR', ...pending })
    world.clock.pass(1000)
    assert.equal((await post(world, merchant, path, wish)).body, asked.body)
    const [flag, ...more] = (await queue(world, '?kind=credit_request')).items as [Body]
    assert.equal(more, [])
    assert.equal([flag.id, flag.subject_id], [flag_id, accepted])
    const { order_id, order_name, billing_cycle_id, ...evidence } = flag.evidence as Body
    assert.ok(order_id && order_name && billing_cycle_id)
    assert.equal(evidence, { merchant_id: merchant.userId, ...wish, billed: '137.50', earlier_requests: 0 })
    assert.equal(await rowsOf(world.platform, 'credits'), [])
    assert.equal(pluck(await rowsOf(world.platform, 'ledger_entries'), 'kind'), ['sale_accepted'])
  })

  it('tells a merchant what became of a credit request, and no one else', async (world) => {
    const { platform, web, merchant, admin } = world
    const { accepted } = await sell(world)
    const ask = async (amount: string, sale = accepted) => {
      const path = `/sales/${sale}/credit-request`
      return (await post(world, merchant, path, { amount, reason: 'It came back.' })).body
    }
    const seen = async (who: Person) => {
      const { body } = await call(web.base, 'GET', `/sales/${accepted}`, { token: who.token })
      const request = body.credit_request as Body | undefined
      return request && [request.status, request.granted_amount]
    }
    const grant = (amount: number, reference: string, requestId: string | null = null) =>
      grantCredit(platform, {
        ...{ merchantId: merchant.userId, amount, reference, requestId },
        ...{ reason: 'returned', actor: OPERATOR },
      })
    const declined = await ask('20.00')
    assert.equal(await seen(merchant), ['pending', null])
    await post(world, admin, `/admin/flagged/${declined.flag_id}/resolve`, { note: 'no proof' })
    assert.equal(await seen(merchant), ['declined', null])
    const granted = await ask('30.00')
    await grant(1000, 'OTHER')
    assert.equal(await seen(merchant), ['pending', null], 'a credit of another amount')
    assert.is((await grant(3000, 'SAME')).requestId, granted.flag_id)
    assert.is((await grant(3000, 'SAME')).requestId, granted.flag_id, 'again')
    assert.equal(await seen(merchant), ['granted', '30.00'])
    const half = await ask('40.00')
    assert.is(await outcomeOf(grant(2000, 'HALF', platform.ids.next())), 'not_found')
    assert.is(await outcomeOf(grant(2000, 'HALF', String(granted.flag_id))), 'not_found')
    await grant(2000, 'HALF', String(half.flag_id))
    assert.equal(await seen(merchant), ['granted', '20.00'])
    assert.equal((await queue(world, '?kind=credit_request')).items, [])
    const published = await rowsOf(platform, 'outbox_events', { type: 'credit_request.decided' })
    assertNone(published, ({ account_id }) => account_id !== merchant.userId)
    const decided = published.map(({ data }) => JSON.parse(data) as Body)
    assert.equal(pluckAll(decided, 'flag_id', 'status'), [
      [declined.flag_id, 'declined'],
      [granted.flag_id, 'granted'],
      [half.flag_id, 'granted'],
    ])
    await sell(world)
    for (const { id } of await rowsOf(platform, 'sales', { rejection_reason: null })) await ask('5.00', id)
    assert.is((await grant(500, 'ALIKE')).requestId, null, 'two requests of this amount')
  })

  it('refuses a credit for more than was billed, for what was not, and a second wish', async (world) => {
    const { merchant, admin } = world
    const { accepted, rejected } = await sell(world)
    const ask = async (sale: string, changes: Body = {}) => {
      const body = { amount: '1', reason: 'why', ...changes }
      return codeOf(await post(world, merchant, `/sales/${sale}/credit-request`, body))
    }
    const amounts = ['0', '0.00', '-1', '1.234', 1].map((amount) => ({ amount }))
    for (const changes of [...amounts, { reason: '' }, { reason: undefined }])
      assert.is(await ask(accepted, changes), '400 validation_failed', JSON.stringify(changes))
    assert.is(await ask(accepted, { amount: '137.51' }), '409 conflict')
    assert.is(await ask(rejected), '409 conflict')
    assert.equal((await queue(world)).items, [])
    assert.is(await ask(accepted), '202')
    assert.is(await ask(accepted, { amount: '2' }), '409 conflict')
    const [flag] = (await queue(world)).items as [Body]
    await post(world, admin, `/admin/flagged/${flag.id}/resolve`, { note: 'declined' })
    assert.is(await ask(accepted, { amount: '2' }), '202')
    const [next] = (await queue(world)).items as [Body]
    assert.is((next.evidence as Body).earlier_requests, 1)
  })

  /** An accepted sale of Rs 1,000 at 12.5 % and a rejected one, both of the merchant's. */
  const sell = async ({ market, shop, creator }: World) => {
    await market.order(shop, await market.addLink(shop, creator), 100_000)
    await market.deliver(shop, orderBody({ createdAt: market.clock.now(), price: 100_000 }))
    await market.drainUntilIdle()
    const [accepted, rejected] = await rowsOf(market.platform, 'sales')
    assert.equal([accepted?.rejection_reason, rejected?.rejection_reason], [null, 'no_tracking_reference'])
    return { accepted: accepted?.id ?? '', rejected: rejected?.id ?? '' }
  }

  it.run()
}
