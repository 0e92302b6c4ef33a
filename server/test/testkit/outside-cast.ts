import * as assert from 'uvu/assert'
import { orderHeaders, type StoreAccess } from './orders.ts'
import { type Answer, call, type ServiceBed } from './service-bed.ts'

const STORE: StoreAccess = { domain: 'a-strangers-shop.myshopify.com', secret: 'a-strangers-webhook-secret' }
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
  await ask(201, 'POST', '/stores', { shop_domain: STORE.domain, webhook_secret: STORE.secret }, merchant)
  const lamp = {
    ...{ title: 'Brass lamp', product_url: 'https://shop.pk/products/lamp?variant=7#top' },
    ...{ category: 'Home', niche: 'Lamps', commission_rate: 12.5 },
  }
  const offer = await ask(201, 'POST', '/offers', lamp, merchant)
  await ask(200, 'PATCH', `/offers/${offer.id}/status`, { status: 'live' }, merchant)
  const application = await ask(201, 'POST', `/offers/${offer.id}/applications`, {}, creator)
  const approval = { decision: 'approve' }
  const decided = await ask(200, 'PATCH', `/applications/${application.id}`, approval, merchant)
  await ask(200, 'PATCH', '/me', { payout_destination: { iban: IBAN, account_title: 'A CREATOR' } }, creator)
  return { merchant, creator, slug: decided.affiliate_link.slug, offerId: offer.id }
}

/** Follows an affiliate link; answers the reference that it adds. */
export async function follow(bed: ServiceBed, slug: string): Promise<string> {
  const answer = await call(bed.url, 'GET', `/go/${slug}`)
  assert.is(answer.status, 302)
  const location = answer.headers.get('location') ?? ''
  const tracked = /^https:\/\/shop\.pk\/products\/lamp\?variant=7&aff_ref=([0-9a-f-]{36})#top$/
  assert.match(location, tracked)
  return tracked.exec(location)?.[1] ?? ''
}

/** The store's signed delivery. */
export function report(
  bed: ServiceBed,
  body: string,
  webhookId: string,
  topic: string | null = 'orders/paid',
): Promise<Answer> {
  const { 'x-shopify-topic': _paid, ...signed } = orderHeaders(STORE, webhookId, body)
  const headers = { ...signed, ...(topic !== null && { 'x-shopify-topic': topic }) }
  return call(bed.url, 'POST', '/webhooks/store-sales', { raw: body, headers })
}
