import { createHmac } from 'node:crypto'
import * as assert from 'uvu/assert'
import { type Answer, call, type ServiceBed } from './service-bed.ts'

const SECRET = 'a-strangers-webhook-secret'
const SHOP = 'a-strangers-shop.myshopify.com'
const IBAN = 'PK36SCBL0000001123456702'

/** Tokens of a merchant and a creator, and the link between them. */
export interface Cast {
  merchant: string
  creator: string
  slug: string
  offerId: string
}

/** A merchant with a store and a live offer at 12.5 %, and a creator with an approved link and a destination. */
export async function cast({ url }: ServiceBed): Promise<Cast> {
  const ask = async (status: number, method: string, path: string, body: object, token = '') => {
    const answer = await call(url, method, path, { token, body })
    assert.is(answer.status, status, JSON.stringify(answer.body))
    return answer.body
  }
  const register = async (role: string, email: string): Promise<string> => {
    const account = { email, password: 'correct horse battery staple', role, display_name: `A ${role}` }
    return (await ask(201, 'POST', '/auth/register', account)).token
  }
  const merchant = await register('merchant', 'owner@example.pk')
  const creator = await register('creator', 'creator@example.pk')
  await ask(201, 'POST', '/stores', { shop_domain: SHOP, webhook_secret: SECRET }, merchant)
  const lamp = {
    ...{ title: 'Brass lamp', product_url: 'https://shop.pk/products/lamp?variant=7#top' },
    ...{ category: 'Home', niche: 'Lamps', commission_rate: 12.5 },
  }
  const offer = await ask(201, 'POST', '/offers', lamp, merchant)
  await ask(200, 'PATCH', `/offers/${offer.id}/status`, { status: 'live' }, merchant)
  const application = await ask(201, 'POST', `/offers/${offer.id}/applications`, {}, creator)
  const decided = await ask(
    200,
    'PATCH',
    `/applications/${application.id}`,
    { decision: 'approve' },
    merchant,
  )
  await ask(200, 'PATCH', '/me', { payout_destination: { iban: IBAN, account_title: 'A CREATOR' } }, creator)
  return { merchant, creator, slug: decided.affiliate_link.slug, offerId: offer.id }
}

/** Follows an affiliate link; answers the reference that it adds. */
export async function follow(bed: ServiceBed, slug: string): Promise<string> {
  const answer = await call(bed.url, 'GET', `/go/${slug}`)
  assert.is(answer.status, 302)
  const location = answer.headers.get('location') ?? ''
  const reference = /^https:\/\/shop\.pk\/products\/lamp\?variant=7&aff_ref=([0-9a-f-]{36})#top$/.exec(
    location,
  )?.[1]
  assert.ok(reference, location)
  return reference as string
}

/** A store's report of a paid order of one lamp. */
export function orderBody(id: string, reference: string, price: string): string {
  return JSON.stringify({
    id: 1,
    name: `#${id}`,
    created_at: new Date().toISOString(),
    currency: 'PKR',
    financial_status: 'paid',
    cancelled_at: null,
    test: false,
    taxes_included: false,
    email: 'person@example.com',
    note_attributes: [],
    landing_site: `/products/lamp?utm_source=x&aff_ref=${reference}`,
    line_items: [
      {
        id: 2,
        product_id: 3,
        title: 'Lamp',
        quantity: 1,
        price,
        discount_allocations: [],
        tax_lines: [],
        gift_card: false,
      },
    ],
  }).replace('"id":1,', `"id":${id},`)
}

/** The store's signed delivery. */
export function report(
  bed: ServiceBed,
  body: string,
  webhookId: string,
  { secret = SECRET, topic = 'orders/paid' as string | null } = {},
): Promise<Answer> {
  return call(bed.url, 'POST', '/webhooks/store-sales', {
    raw: body,
    headers: {
      'content-type': 'application/json',
      ...(topic !== null && { 'x-shopify-topic': topic }),
      'x-shopify-shop-domain': SHOP,
      'x-shopify-webhook-id': webhookId,
      'x-shopify-hmac-sha256': createHmac('sha256', secret).update(body).digest('base64'),
    },
  })
}
