import { sql } from 'kysely'
import { createClickRecorder, rollUpClicks } from '../../../server/clicks/clicks.service.ts'
import type { Platform } from '../../../server/platform/platform.ts'
import { BILLING_INVARIANTS } from '../../../server/proof/invariants/billing.ts'
import { listSales } from '../../../server/sales/sales.service.ts'
import type { Bed } from '../bed.ts'
import type { Comparison, Measurement } from '../figures.ts'
import { addSales, addSellers, openCycles, type Sellers } from '../fill-sales.ts'
import { timed } from '../measure.ts'

const MILLION = 1_000_000
const CLICKS = [1, 2, 4, 8].map((millions) => millions * MILLION)
const SALES = [0.25, 0.5, 1, 2].map((millions) => millions * MILLION)
const SELLERS = 500
/** So many at a time that no statement outlasts the patience for one. */
const CLICKS_A_PART = 250_000
const BATCH = 64
const DAY_MS = 86_400_000
const LINK = '01900000-0000-7000-8000-000000000001'

/** How the cost of each path moves while its tables double: flat, or with the rows. */
export async function benchGrowth(bed: Bed): Promise<(Comparison | Measurement)[]> {
  return [...(await growClicks(bed)), ...(await growSales(bed))]
}

async function growClicks(bed: Bed): Promise<Measurement[]> {
  const { platform } = bed.app
  const recorder = createClickRecorder(platform)
  const found: Measurement[] = []
  let there = 0
  for (const size of CLICKS) {
    for (; there < size; there += CLICKS_A_PART) await addOldClicks(platform, there, CLICKS_A_PART)
    const label = `${size / MILLION} M clicks`
    const batch = await repeated(bed.rounds * 10, () => recordBatch(platform, recorder))
    found.push(measurement(bed, `${label}: a batch of ${BATCH} clicks`, batch))
    found.push(
      measurement(bed, `${label}: a roll-up`, await repeated(bed.rounds, () => rollUpClicks(platform))),
    )
  }
  await recorder.idle()
  return found
}

async function recordBatch(
  platform: Platform,
  recorder: ReturnType<typeof createClickRecorder>,
): Promise<void> {
  const click = () => {
    const createdAt = platform.clock.now()
    return recorder.record({ id: platform.ids.next(), linkId: LINK, tracked: true, kind: 'visit', createdAt })
  }
  await Promise.all(Array.from({ length: BATCH }, click))
}

/** Clicks of the past, with ids that count up: before whatever comes now, as real ones of the past would be. */
async function addOldClicks({ database }: Platform, from: number, count: number): Promise<void> {
  const [first, last] = [sql.lit(from + 1), sql.lit(from + count)]
  const source =
    database.dialect === 'sqlite'
      ? sql`with recursive line(n) as (select ${first} union all select n + 1 from line where n < ${last})
          select printf('01890000-0000-7000-8000-%012x', n), ${LINK}, 1, 'visit', 0 from line`
      : sql`select cast('01890000-0000-7000-8000-' || lpad(to_hex(n), 12, '0') as uuid), cast(${LINK} as uuid), 1, 'visit', 0
          from generate_series(${first}, ${last}) as line(n)`
  await database.transaction((tx) =>
    sql`insert into clicks (id, link_id, tracked, kind, created_at) ${source}`.execute(tx),
  )
  await database.transaction((tx) =>
    tx
      .insertInto('watermarks')
      .values({ name: 'clicks', value: '018f0000-0000-7000-8000-000000000000' })
      .onConflict((conflict) => conflict.doNothing())
      .execute(),
  )
}

async function growSales(bed: Bed): Promise<Measurement[]> {
  const { platform } = bed.app
  const sellers = await addSellers(platform, SELLERS)
  const now = platform.clock.now()
  await openCycles(platform, sellers, { start: now - DAY_MS, end: now + DAY_MS }, 0)
  const found: Measurement[] = []
  let there = 0
  for (const size of SALES) {
    await addSales(platform, { cycles: SELLERS, each: (size - there) / SELLERS, from: there })
    there = size
    if (bed.dialect === 'postgresql') await sql`analyze sales`.execute(bed.app.database.writer)
    const label = `${size / MILLION} M sales`
    const page = await repeated(bed.rounds * 4, () => firstPage(platform, sellers))
    found.push(measurement(bed, `${label}: a page of a merchant's sales`, page))
    found.push(
      measurement(bed, `${label}: audit of the totals`, await repeated(bed.rounds, () => audit(platform))),
    )
  }
  return found
}

function firstPage(platform: Platform, [seller]: readonly Sellers[]): Promise<unknown> {
  const filter = { acceptanceStatus: null, offerId: null, from: null, to: null, limit: 50, before: null }
  return listSales(platform, { merchantId: seller?.merchantId ?? '' }, filter)
}

/** What it finds is of no interest here: the totals were left as they were. */
async function audit(platform: Platform): Promise<void> {
  const totals = BILLING_INVARIANTS.find(({ name }) => name === 'cycle-totals')
  await totals?.breaches(platform.database.reader)
}

async function repeated(times: number, work: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = []
  for (let time = 0; time < times; time += 1) taken.push(await timed(work))
  return taken
}

function measurement({ dialect }: Bed, what: string, values: readonly number[]): Measurement {
  return { what, database: dialect, unit: 'ms', values, most: null }
}
