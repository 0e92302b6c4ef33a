import { signShopifyBody } from '../../../server/shopify/signature.ts'
import { addMerchant } from '../../../server/test/testkit/listings.ts'
import type { Bed } from '../bed.ts'
import type { Comparison, Measurement } from '../figures.ts'
import type { BenchRequest, Load } from '../load.ts'
import { storeOrder } from '../orders.ts'
import { type Listening, startPeer, startServer } from '../processes.ts'
import { compareAtFixedLoad, compareUnderLoad } from '../under-load.ts'

const ORDERS = 64
const MUST = {
  sqlite: { kind: 'least', ratio: 0.22 },
  postgresql: { kind: 'least', ratio: 0.18 },
} as const
const RATE = 1000
/** ms. */
const MOST_ABOVE_PEER = { sqlite: 20, postgresql: 30 }

/** Signed orders of 8 KB, each a delivery of its own; every one is verified and on disk before its answer. */
export async function benchWebhooks(bed: Bed): Promise<(Comparison | Measurement)[]> {
  const requests = await deliveries(bed)
  const load: Load = { requests, uniqueHeader: 'x-shopify-webhook-id', status: 200 }
  const peer = await startPeer('read-body')
  // All requests belong to one store, which sends far more than any store does.
  const settings = {
    ...bed.environment,
    WEBHOOK_EVENTS_PER_MINUTE: '1000000000',
    WEBHOOK_BYTES_PER_MINUTE: '1000000000000',
  }
  const bare = { target: peer, load }
  try {
    const size = Buffer.byteLength(requests[0]?.body ?? '')
    const what = {
      path: 'POST /webhooks/store-sales',
      database: bed.dialect,
      against: 'node:http, reads the body',
      must: MUST[bed.dialect],
      notes: [`bodies of ${size} bytes; at saturation the worker is off`],
    }
    const fixed = { what: what.path, rate: RATE, mostAbovePeer: MOST_ABOVE_PEER[bed.dialect] }
    return [
      await withServer({ ...settings, ROLES: 'web,worker' }, (target) =>
        compareAtFixedLoad(fixed, bed, bare, { target, load }),
      ),
      await withServer(settings, (target) => compareUnderLoad(what, bed, bare, { target, load })),
    ]
  } finally {
    await peer.stop()
  }
}

async function withServer<T>(
  settings: Record<string, string>,
  work: (server: Listening) => Promise<T>,
): Promise<T> {
  const server = await startServer(settings)
  try {
    return await work(server)
  } finally {
    await server.stop()
  }
}

async function deliveries({ app: { platform } }: Bed): Promise<BenchRequest[]> {
  const merchant = await addMerchant(platform)
  const secret = `secret-${merchant.userId}`
  return Array.from({ length: ORDERS }, (_, number) => {
    const body = storeOrder(number, platform.ids.next(), platform.clock.now())
    return {
      method: 'POST',
      path: '/webhooks/store-sales',
      body,
      headers: {
        'content-type': 'application/json',
        'x-shopify-topic': 'orders/paid',
        'x-shopify-shop-domain': `s${merchant.userId}.myshopify.com`,
        'x-shopify-hmac-sha256': signShopifyBody(Buffer.from(body), secret),
      },
    }
  })
}
