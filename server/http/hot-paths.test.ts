// database: sqlite
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { LinkRecord } from '../links/links.service.ts'
import { signShopifyBody } from '../shopify/signature.ts'
import { addLink, addLiveOffer, addMerchant } from '../test/testkit/listings.ts'
import { addUser, setSuspended } from '../test/testkit/people.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'

interface Context {
  bed: WebTestbed
  merchantId: string
  link: LinkRecord
  deliver(secret: string): Promise<Response>
}

const it = suite<Context>('what surrounds the redirect and the webhooks')

it.before(async (context) => {
  const bed = await openWebTestbed('sqlite')
  const merchant = await addMerchant(bed.platform)
  const offer = await addLiveOffer(bed.platform, merchant)
  const link = await addLink(bed.platform, merchant, await addUser(bed.platform, 'creator'), offer.id)
  const body = '{"id":1}'
  const deliver = (secret: string) =>
    fetch(`${bed.base}/webhooks/store-sales`, {
      method: 'POST',
      body,
      headers: {
        'x-shopify-topic': 'orders/paid',
        'x-shopify-shop-domain': `s${merchant.userId}.myshopify.com`,
        'x-shopify-hmac-sha256': signShopifyBody(Buffer.from(body), secret),
      },
    })
  const own = (secret: string) => deliver(secret === 'right' ? `secret-${merchant.userId}` : secret)
  Object.assign(context, { bed, link, merchantId: merchant.userId, deliver: own })
})
it.after(({ bed }) => bed.close())

const OF_EVERY_ANSWER = {
  'cache-control': 'no-store',
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
}
/** Of what could be shown, run or read. */
const OF_BODIES = ['content-security-policy', 'x-frame-options']

function looksAfter(answer: Response, hasBody: boolean): void {
  for (const [name, value] of Object.entries(OF_EVERY_ANSWER))
    assert.is(answer.headers.get(name), value, name)
  assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
  for (const name of OF_BODIES) assert.is(answer.headers.has(name), hasBody, name)
}

it('gives what no browser shows only headers that still mean something', async ({ bed, link, deliver }) => {
  const visit = await fetch(`${bed.base}/go/${link.slug}`, { redirect: 'manual' })
  assert.is(visit.status, 302)
  looksAfter(visit, false)
  const delivery = await deliver('right')
  assert.is(delivery.status, 200)
  looksAfter(delivery, false)
  assert.is(delivery.headers.get('content-type'), 'application/json; charset=utf-8')
  assert.is(await delivery.text(), '{"received":true}')
})

it('gives a refusal, which has a body, all of them', async ({ bed, link, merchantId, deliver }) => {
  const stranger = await fetch(`${bed.base}/go/none`, { redirect: 'manual' })
  assert.is(stranger.status, 404)
  looksAfter(stranger, true)
  const forged = await deliver('wrong')
  assert.is(forged.status, 401)
  looksAfter(forged, true)
  await setSuspended(bed.platform, merchantId, true)
  bed.platform.caches.drop('slug')
  const gone = await fetch(`${bed.base}/go/${link.slug}`, { redirect: 'manual' })
  assert.is(gone.status, 410)
  looksAfter(gone, true)
  await setSuspended(bed.platform, merchantId, false)
  bed.platform.caches.drop('slug')
})

it.run()
