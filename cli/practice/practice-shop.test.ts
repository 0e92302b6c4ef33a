import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { verify } from '../../server/test/testkit/marketplace.ts'
import { type Cast, cast } from '../../server/test/testkit/outside-cast.ts'
import { pluck } from '../../server/test/testkit/pluck.ts'
import { call, callAny, openServiceBed, type ServiceBed } from '../../server/test/testkit/service-bed.ts'
import { addPracticeShop } from './practice-shop.ts'

const it = suite('the practice shop')
let bed: ServiceBed
let people: Cast

it.before(async () => {
  bed = await openServiceBed(
    'sqlite',
    {},
    { extend: (server, app) => addPracticeShop(server, app, { roundMs: 50 }) },
  )
  people = await cast(bed)
})
it.after(() => bed.close())

/** Follows a link as a browser does, up to the product page. */
async function visit(): Promise<string> {
  const answer = await callAny(bed.url, 'GET', `/go/${people.slug}`)
  assert.is(answer.status, 302)
  return answer.headers.get('location') ?? ''
}

/** Presses a button; returns the page of the order. */
async function press(address: string, step: string): Promise<{ address: string; text: string }> {
  const answer = await fetch(address, { method: 'POST', body: new URLSearchParams({ step }) })
  assert.is(answer.status, 200)
  return { address: answer.url, text: await answer.text() }
}

const list = async (path: string, token: string) => (await call(bed.url, 'GET', path, { token })).body.items

it('shows its links and shops, and sells nothing of a shop that no one connected', async () => {
  const page = await fetch(`${bed.url}/practice`)
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'.*form-action 'self'/)
  const text = await page.text()
  assert.match(text, `href="/go/${people.slug}"`)
  assert.match(text, 'href="/practice/a-strangers-shop.myshopify.com/products/gift"')
  for (const host of ['unknown.myshopify.com', '%20']) {
    const answer = await fetch(`${bed.url}/practice/${host}/products/x`, { method: 'POST', body: '' })
    assert.is(answer.status, 404, host)
    assert.match(await answer.text(), /This shop cannot sell/)
  }
  assert.is((await fetch(`${bed.url}/practice/orders/1`)).status, 404)
})

it('sells to visitors of a link: the sale is accepted, its month ends, and the creator is paid', async () => {
  const address = await visit()
  assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/practice\/shop\.pk\/products\/lamp\?variant=7&aff_ref=/)
  const product = await (await fetch(address)).text()
  assert.match(product, /Brass lamp/)
  assert.match(product, /You came by A creator&#39;s link/)
  const order = await press(address, 'pay')
  assert.match(order.text, /orders\/paid, HTTP 200: sale accepted, commission Rs 1,000\.00/)
  const { merchant, creator } = people
  const [sale] = await list('/sales', creator)
  assert.equal([sale.acceptance_status, sale.commission], ['accepted', '1000.00'])
  const [payout] = await eventually(
    () => list('/payouts', creator),
    ([first]) => first?.state === 'paid',
  )
  assert.is(payout.amount, '1000.00')
  assert.is((await list('/billing-cycles', merchant))[0].state, 'charged')
  assert.match((await press(order.address, 'refund')).text, /orders\/updated, HTTP 200/)
  assert.is((await list('/sales', creator)).length, 1)
})

it('takes cash on delivery: pending until it is delivered, gone when it is canceled', async () => {
  const { creator } = people
  const states = async () => pluck(await list('/pending-orders', creator), 'state')
  const delivered = await press(await visit(), 'order')
  assert.match(delivered.text, /orders\/create, HTTP 200: a pending order/)
  assert.equal(await states(), ['pending'])
  assert.match((await press(delivered.address, 'deliver')).text, /orders\/paid, HTTP 200: sale accepted/)
  assert.equal(await states(), ['became_sale'])
  const canceled = await press(await visit(), 'order')
  assert.match((await press(canceled.address, 'cancel')).text, /orders\/cancelled, HTTP 200/)
  assert.equal(await states(), ['cancelled', 'became_sale'])
  // What does not follow changes nothing.
  assert.not.match((await press(canceled.address, 'deliver')).text, /sale accepted/)
})

it('sells without a link too, which earns no commission', async () => {
  const shop = `${bed.url}/practice/a-strangers-shop.myshopify.com/products/gift`
  assert.match((await press(shop, 'pay')).text, /sale rejected: no_tracking_reference/)
  const [store] = await list('/stores', people.merchant)
  assert.is.not(store.last_event_at, null)
})

it('leaves books in which every invariant holds', async () => {
  await verify(bed.service.app.platform)
})

it.run()
