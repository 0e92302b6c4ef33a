import { sql } from 'kysely'
import { createClickRecorder, rollUpClicks } from '../../../server/clicks/clicks.service.ts'
import type { Platform } from '../../../server/platform/platform.ts'
import type { Bed } from '../bed.ts'
import { type Comparison, type Measurement, milliseconds } from '../figures.ts'
import { repeatedly } from '../measure.ts'
import { growSales } from './growth-sales.ts'

const MILLION = 1_000_000
const CLICKS = [1, 2, 4, 8].map((millions) => millions * MILLION)
/** So many at a time that no statement outlasts the timeout of one. */
const CLICKS_A_PART = 250_000
const BATCH = 64
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
    await rollUpClicks(platform)
    const label = `${size / MILLION} M clicks`
    const batch = await repeatedly(bed.rounds * 10, () => recordBatch(platform, recorder))
    const rollUp = await repeatedly(bed.rounds, () => rollUpClicks(platform))
    found.push(milliseconds(bed, `${label}: a batch of ${BATCH} clicks`, batch))
    found.push(milliseconds(bed, `${label}: a roll-up`, rollUp))
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
}
