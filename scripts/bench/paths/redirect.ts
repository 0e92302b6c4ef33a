import { addLink, addLiveOffer, addMerchant } from '../../../server/test/testkit/listings.ts'
import { addUser } from '../../../server/test/testkit/people.ts'
import type { Bed } from '../bed.ts'
import type { Comparison, Measurement } from '../figures.ts'
import type { BenchRequest, Load } from '../load.ts'
import { startPeer, startServer } from '../processes.ts'
import { compareAtFixedLoad, compareUnderLoad } from '../under-load.ts'

const LINKS = 50
const BROWSER = 'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0.0.0 Mobile Safari/537.36'
const MUST = {
  sqlite: { kind: 'least', ratio: 0.45 },
  postgresql: { kind: 'least', ratio: 0.38 },
} as const
const RATE = 3000
/** ms. */
const MOST_ABOVE_PEER = { sqlite: 10, postgresql: 20 }

/** What apps append, and a creator's own mark. */
const QUERY = '?utm_source=instagram&utm_medium=social&fbclid=IwAR3dFf0x9yQ2mJbX&sub=reel'

/** Visitors of fifty links, every second one with a query; every click is on disk before its answer. */
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
    const fixed = { what: what.path, rate: RATE, mostAbovePeer: MOST_ABOVE_PEER[bed.dialect] }
    const bare = { target: peer, load }
    const ours = { target: server, load }
    return [await compareAtFixedLoad(fixed, bed, bare, ours), await compareUnderLoad(what, bed, bare, ours)]
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
  for (const [index, creator] of creators.entries()) {
    const { slug } = await addLink(platform, merchant, creator, offer.id)
    const query = index % 2 === 0 ? '' : `${QUERY}-${index}`
    requests.push({ method: 'GET', path: `/go/${slug}${query}`, headers: { 'user-agent': BROWSER } })
  }
  return requests
}
