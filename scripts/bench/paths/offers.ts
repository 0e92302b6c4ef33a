import { sql } from 'kysely'
import { encodeCursor } from '../../../server/platform/page.ts'
import { basisPointsToPercent } from '../../../shared/rates.ts'
import type { Bed } from '../bed.ts'
import { type Comparison, type Measurement, ratioOf } from '../figures.ts'
import { fillOffers } from '../fill-offers.ts'
import type { Load } from '../load.ts'
import { startPeer, startServer } from '../processes.ts'
import { compareUnderLoad } from '../under-load.ts'

const OFFERS = 100_000
const PAGE = 50
const DEEP = 999
/** So many that no answer is asked for twice within the time that a shared one is kept. */
const VARIANTS = 4000
const MUST = { kind: 'least', ratio: 0.5, aim: 1 } as const
const DEEP_WITHIN = 1.3

interface Variant {
  /** Basis points. */
  min: number
  max: number
  after: { rate: number; id: string } | null
}

/** A hundred thousand live offers, fifty a page, filtered by rate: pages that nobody asked for before, and a popular one. */
export async function benchOffers(bed: Bed): Promise<(Comparison | Measurement)[]> {
  await fillOffers(bed.app.platform, OFFERS)
  if (bed.dialect === 'postgresql') await sql`vacuum analyze offers`.execute(bed.app.database.writer)
  const peer = await startPeer('offers', { DATABASE_URL: bed.url })
  const server = await startServer({ ...bed.environment, RATE_LIMIT_PUBLIC: '1000000' })
  const compare = (path: string, variants: readonly Variant[], notes: string[]) =>
    compareUnderLoad(
      { path, database: bed.dialect, against: 'node:http, keyset by hand', must: MUST, notes },
      bed,
      { target: peer, load: loadOf(variants.map(peerPath)) },
      { target: server, load: loadOf(variants.map(ourPath)) },
    )
  try {
    const first = await compare('GET /offers, page 1', firstPages(), ['each with filters of its own'])
    const deep = await compare('GET /offers, page 1,000', await deepPages(bed), ['each from another place'])
    const popular = await compare('GET /offers, same page', firstPages().slice(0, 20), [
      'twenty filters in turn',
    ])
    return [first, deep, popular, depthCost(bed, first, deep)]
  } finally {
    await server.stop()
    await peer.stop()
  }
}

function loadOf(paths: readonly string[]): Load {
  return { requests: paths.map((path) => ({ method: 'GET', path })), status: 200, inTurn: true }
}

function firstPages(): Variant[] {
  return Array.from({ length: VARIANTS }, (_, index) => ({
    min: 100 + Math.floor(index / 80),
    max: 3000 - (index % 80),
    after: null,
  }))
}

async function deepPages({ app }: Bed): Promise<Variant[]> {
  const rows = await app.platform.database.reader
    .selectFrom('offers')
    .select(['commission_rate as rate', 'id'])
    .orderBy('commission_rate', 'desc')
    .orderBy('id', 'desc')
    .offset(DEEP * PAGE)
    .limit(VARIANTS)
    .execute()
  return rows.map((after) => ({ min: 100, max: 3000, after }))
}

function ourPath({ min, max, after }: Variant): string {
  const cursor = after ? `&cursor=${encodeCursor(['commission_desc', after.rate, after.id])}` : ''
  const rates = `commission_min=${basisPointsToPercent(min)}&commission_max=${basisPointsToPercent(max)}`
  return `/offers?limit=${PAGE}&sort=commission_desc&${rates}${cursor}`
}

function peerPath({ min, max, after }: Variant): string {
  return `/offers?min=${min}&max=${max}${after ? `&rate=${after.rate}&id=${after.id}` : ''}`
}

/** How much dearer the thousandth page is than the first, both in ratio to the peer's own. */
function depthCost({ dialect }: Bed, first: Comparison, deep: Comparison): Measurement {
  return {
    what: 'offers: page 1,000 costs, of page 1',
    database: dialect,
    unit: '×',
    values: [ratioOf({ ours: first.ours, peer: deep.ours }).median],
    most: DEEP_WITHIN,
  }
}
