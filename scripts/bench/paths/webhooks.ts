import { signShopifyBody } from '../../../server/shopify/signature.ts'
import { addMerchant } from '../../../server/test/testkit/listings.ts'
import type { Bed } from '../bed.ts'
import type { Comparison, Measurement } from '../figures.ts'
import type { BenchRequest, Load } from '../load.ts'
import { storeOrder } from '../orders.ts'
import { startPeer, startServer } from '../processes.ts'
import { compareUnderLoad } from '../under-load.ts'

const ORDERS = 64
const P99 = { below: 25, aim: 8 }
const MUST = {
  sqlite: { kind: 'least', ratio: 0.27, aim: 0.4, p99: P99 },
  postgresql: { kind: 'least', ratio: 0.25, aim: 0.4, p99: P99 },
} as const

/** Signed orders of 8 KB, each a delivery of its own; every one is verified and on disk before its answer. */
export async function benchWebhooks(bed: Bed): Promise<(Comparison | Measurement)[]> {
  const requests = await deliveries(bed)
  const load: Load = { requests, uniqueHeader: 'x-shopify-webhook-id', status: 200 }
  const peer = await startPeer('read-body')
  // Far above what any store sends: all requests here are one store's.
  const quota = { WEBHOOK_EVENTS_PER_MINUTE: '1000000000', WEBHOOK_BYTES_PER_MINUTE: '1000000000000' }
  const server = await startServer({ ...bed.environment, ...quota })
  try {
    const size = Buffer.byteLength(requests[0]?.body ?? '')
    const what = {
      path: 'POST /webhooks/store-sales',
      database: bed.dialect,
      against: 'node:http, reads the body',
      must: MUST[bed.dialect],
      notes: [`bodies of ${size} bytes; the worker is off, so that only the taking in is measured`],
    }
    return [await compareUnderLoad(what, bed, { target: peer, load }, { target: server, load })]
  } finally {
    await server.stop()
    await peer.stop()
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
