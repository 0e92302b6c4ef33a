import { sql } from 'kysely'
import { encodeCursor } from '../../../server/platform/api/page.ts'
import { basisPointsToPercent } from '../../../shared/rates.ts'
import type { Bed } from '../bed.ts'
import type { Comparison, Measurement } from '../figures.ts'
import { fillOffers } from '../fill-offers.ts'
import type { Load } from '../load.ts'
import { type Listening, startPeer, startServer } from '../processes.ts'
import { compareUnderLoad } from '../under-load.ts'

const OFFERS = 100_000
const PAGE = 50
const DEEP = 999
/** So many that no answer is asked for twice within the time that a shared one is kept. */
const VARIANTS = 4000
/** So few that nearly every answer is a shared one. */
const POPULAR = 20
const MUST = { kind: 'least', ratio: 0.5 } as const
const DEEP_WITHIN = 1.3

interface Variant {
  /** Basis points. */
  min: number
  max: number
  after: { rate: number; id: string } | null
}

/** A hundred thousand live offers, fifty a page, filtered by rate: pages not requested before, and a popular one. */
export async function benchOffers(bed: Bed): Promise<(Comparison | Measurement)[]> {
  await fillOffers(bed.app.platform, OFFERS)
  if (bed.dialect === 'postgresql') await sql`vacuum analyze offers, users`.execute(bed.app.database.writer)
  const peer = await startPeer('offers', { DATABASE_URL: bed.url })
  const server = await startServer({ ...bed.environment, RATE_LIMIT_PUBLIC: '1000000' })
  const compare = (
    path: string,
    variants: readonly Variant[],
    notes: string[],
    must: Comparison['must'] = MUST,
  ) =>
    compareUnderLoad(
      { path, database: bed.dialect, against: 'node:http, keyset by hand', must, notes },
      bed,
      { target: peer, load: loadOf(variants.map(peerPath)) },
      { target: server, load: loadOf(variants.map(ourPath)) },
    )
  try {
    const deep = await deepPages(bed)
    return [
      await compare('GET /offers, page 1', firstPages(), [
        'page 1: each with filters of its own, so no page is cached',
      ]),
      await compare('GET /offers, page 1,000', deep, [
        'page 1,000: each from another place, the next by one offer',
      ]),
      await compare(
        'GET /offers, page 1 shared',
        firstPages().slice(0, POPULAR),
        [`page 1 shared: ${POPULAR} filters in turn, kept for a moment as what visitors ask for is`],
        null,
      ),
      await depthCost(bed, server, deep),
    ]
  } finally {
    await server.stop()
    await peer.stop()
  }
}

function loadOf(paths: readonly string[]): Load {
  return { requests: paths.map((path) => ({ method: 'GET', path })), status: 200, sequential: true }
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

/** How much dearer the thousandth page is than the first, asked for in turn. */
async function depthCost(bed: Bed, target: Listening, deep: readonly Variant[]): Promise<Measurement> {
  const [first, thousandth] = [firstPages(), deep].map((pages) => ({
    target,
    load: loadOf(pages.map(ourPath)),
  }))
  if (!first || !thousandth) throw new Error('two kinds of pages')
  const what = { path: '', database: bed.dialect, against: 'page 1', must: null, notes: [] }
  const found = await compareUnderLoad(what, bed, first, thousandth)
  return {
    what: 'offers: page 1,000 costs, of page 1',
    database: bed.dialect,
    unit: '×',
    values: found.peer.map((perSecond, round) => perSecond / (found.ours[round] ?? Number.NaN)),
    most: DEEP_WITHIN,
  }
}
