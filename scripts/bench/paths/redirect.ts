import { addLink, addLiveOffer, addMerchant } from '../../../server/test/testkit/listings.ts'
import { addUser } from '../../../server/test/testkit/people.ts'
import type { Bed } from '../bed.ts'
import type { Comparison, Measurement } from '../figures.ts'
import type { BenchRequest, Load } from '../load.ts'
import { startPeer, startServer } from '../processes.ts'
import { compareUnderLoad } from '../under-load.ts'

const LINKS = 50
const BROWSER = 'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0.0.0 Mobile Safari/537.36'
const P99 = { below: 25, aim: 8 }
const MUST = {
  sqlite: { kind: 'least', ratio: 0.58, aim: 0.75, p99: P99 },
  postgresql: { kind: 'least', ratio: 0.45, aim: 0.6, p99: P99 },
} as const

/** Visitors of fifty links; every click is on disk before its answer. */
export async function benchRedirect(bed: Bed): Promise<(Comparison | Measurement)[]> {
  const load: Load = { requests: await visits(bed), status: 302 }
  const peer = await startPeer('fixed-redirect')
  const server = await startServer(bed.environment)
  try {
    const what = {
      path: 'GET /go/:slug',
      database: bed.dialect,
      against: 'node:http, fixed 302',
      must: MUST[bed.dialect],
      notes: ['all clicks come from one address, so the watch over click velocity counts and flags'],
    }
    return [await compareUnderLoad(what, bed, { target: peer, load }, { target: server, load })]
  } finally {
    await server.stop()
    await peer.stop()
  }
}

async function visits({ app: { platform } }: Bed): Promise<BenchRequest[]> {
  const merchant = await addMerchant(platform)
  const creators = await Promise.all(Array.from({ length: LINKS }, () => addUser(platform, 'creator')))
  const offer = await addLiveOffer(platform, merchant)
  const requests: BenchRequest[] = []
  for (const creator of creators) {
    const { slug } = await addLink(platform, merchant, creator, offer.id)
    requests.push({ method: 'GET', path: `/go/${slug}`, headers: { 'user-agent': BROWSER } })
  }
  return requests
}
