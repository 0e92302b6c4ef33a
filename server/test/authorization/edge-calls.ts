import { randomUUID } from 'node:crypto'
import { unsubscribeUrl } from '../../notifications/channels/mail/notifications.service.ts'
import { standardWebhooks } from '../../processor/signatures/choose-scheme.ts'
import { accessOf } from '../testkit/listings.ts'
import { orderBody, orderHeaders } from '../testkit/orders.ts'
import { WEB_TESTBED_SECRET } from '../testkit/web.ts'
import type { WebCall } from './calls.ts'
import { freshJob, type Occasion } from './recipes.ts'

type EdgeCall = (occasion: Occasion) => WebCall | Promise<WebCall>

/** How each route that is no procedure is called so that it does what it is for, by its row in the matrix. */
export const EDGE_CALLS: Record<string, EdgeCall> = {
  'GET /go/:slug': ({ tenant }) => ({ method: 'GET', path: `/go/${tenant.link.slug}` }),
  'GET /jobs/:id/file': async ({ scene, me }) => ({
    method: 'GET',
    path: `/jobs/${await freshJob(scene.platform, me)}/file`,
  }),
  'GET /account/unsubscribe': (occasion) => ({ method: 'GET', path: unsubscribePath(occasion) }),
  'POST /account/unsubscribe': (occasion) => ({ method: 'POST', path: unsubscribePath(occasion) }),
  'GET /docs/guides/:name': () => ({ method: 'GET', path: '/docs/guides/settings' }),
  'POST /webhooks/store-sales+signed': (occasion) => storeDelivery(occasion, true),
  'POST /webhooks/store-sales+forged': (occasion) => storeDelivery(occasion, false),
  'POST /webhooks/processor+signed': (occasion) => processorDelivery(occasion, WEB_TESTBED_SECRET),
  'POST /webhooks/processor+forged': (occasion) =>
    processorDelivery(occasion, `whsec_${Buffer.alloc(24, 1).toString('base64')}`),
}

/** A route without an entry of its own takes nothing. */
export function edgeCall(row: string, occasion: Occasion): WebCall | Promise<WebCall> {
  const special = EDGE_CALLS[row]
  if (special) return special(occasion)
  const [method = '', path = ''] = row.split(' ')
  if (path.includes(':')) throw new Error(`${row} needs an entry here: its path has parameters`)
  return { method, path }
}

function unsubscribePath({ scene, tenant }: Occasion): string {
  const { pathname, search } = new URL(unsubscribeUrl(scene.platform, tenant.shop.merchantId, 'store.silent'))
  return `${pathname}${search}`
}

function storeDelivery({ scene, tenant }: Occasion, signed: boolean): WebCall {
  const access = accessOf(tenant.shop.actor)
  const body = Buffer.from(orderBody({ price: 100_000, createdAt: scene.platform.clock.now() }))
  return {
    method: 'POST',
    path: '/webhooks/store-sales',
    headers: orderHeaders(signed ? access : { ...access, secret: 'an unknown secret' }, randomUUID(), body),
    body,
  }
}

function processorDelivery({ scene }: Occasion, secret: string): WebCall {
  const { clock, ids } = scene.platform
  const rawBody = Buffer.from(JSON.stringify({ type: 'invoice.viewed', data: {} }))
  const signature = standardWebhooks.sign({ deliveryId: ids.next(), rawBody, secret, now: clock.now() })
  return {
    method: 'POST',
    path: '/webhooks/processor',
    headers: { 'content-type': 'application/json', ...signature },
    body: rawBody,
  }
}
