import { sql } from 'kysely'
import { closeDueCycles } from '../../../server/billing/close-cycle.service.ts'
import type { Platform } from '../../../server/platform/platform.ts'
import { BILLING_INVARIANTS } from '../../../server/verification/billing.ts'
import { EVERYTHING } from '../../../server/verification/scope.ts'
import { DAY_MS } from '../../../shared/durations.ts'
import type { Bed } from '../bed.ts'
import { type Driver, openDriver } from '../driver.ts'
import type { Comparison, Measurement } from '../figures.ts'
import { addSales, addSellers, openCycles, type Sellers } from '../fill-sales.ts'
import { growthOf, timed } from '../measure.ts'

const MERCHANTS = 1000
const SALES_EACH = 1000
const MUST = { kind: 'most', ratio: 1 } as const
const AUDIT = { kind: 'most', ratio: 3 } as const
const GROWTH_MB = 100
const AGAINST = 'one group by over a million sales'

/**
 * Closes a thousand merchants' cycles over a million sales. A closed cycle never opens again, so every round closes the
 * next cycle of the same merchants; the sales stay those of the first one, which a close does not look at.
 */
export async function benchClose(bed: Bed): Promise<(Comparison | Measurement)[]> {
  const { platform } = bed.app
  const sellers = await addSellers(platform, MERCHANTS)
  const start = Math.floor(platform.clock.now() / DAY_MS) * DAY_MS - 400 * DAY_MS
  await openCycles(platform, sellers, { start, end: start + DAY_MS }, SALES_EACH)
  await addSales(platform, { cycles: MERCHANTS, start, each: SALES_EACH, from: 0 })
  if (bed.dialect === 'postgresql') await sql`vacuum analyze`.execute(bed.app.database.writer)
  const driver = openDriver(bed.url)
  try {
    const audit = await timeAudit(bed, driver)
    const { peer, ours, growth } = await timeCloses(bed, driver, sellers, start)
    return [
      comparison(bed, `close ${MERCHANTS} cycles`, { peer, ours, must: MUST }),
      comparison(bed, 'audit of their totals', { ...audit, must: AUDIT }),
      {
        what: 'memory growth of the close',
        database: bed.dialect,
        unit: 'MB',
        values: growth,
        most: GROWTH_MB,
      },
    ]
  } finally {
    await driver.close()
  }
}

function comparison(
  { dialect }: Bed,
  path: string,
  found: Pick<Comparison, 'peer' | 'ours' | 'must'>,
): Comparison {
  return { path, database: dialect, against: AGAINST, unit: 'ms', notes: [], ...found }
}

async function timeCloses(bed: Bed, driver: Driver, sellers: readonly Sellers[], start: number) {
  const { platform } = bed.app
  const [peer, ours, growth]: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < bed.rounds; round += 1) {
    const period = { start: start + round * DAY_MS, end: start + (round + 1) * DAY_MS }
    if (round > 0) await openCycles(platform, sellers, period, SALES_EACH)
    peer.push(await timed(() => groupBy(driver)))
    let closing = 0
    growth.push(
      await growthOf(async () => {
        closing = await timed(() => closeAll(platform, period.end))
      }),
    )
    ours.push(closing)
  }
  return { peer, ours, growth }
}

async function timeAudit(bed: Bed, driver: Driver): Promise<Pick<Comparison, 'peer' | 'ours'>> {
  const audit = BILLING_INVARIANTS.find(({ name }) => name === 'cycle-totals')
  if (!audit) throw new Error('the invariant over the totals of cycles is called otherwise now')
  const [peer, ours]: [number[], number[]] = [[], []]
  for (let round = 0; round < bed.rounds; round += 1) {
    peer.push(await timed(() => groupBy(driver)))
    ours.push(
      await timed(async () => {
        const breaches = await audit.breaches(
          bed.app.platform.database.reader,
          bed.app.platform.keys,
          EVERYTHING,
        )
        if (breaches.length > 0) throw new Error(`the totals are wrong: ${breaches[0]?.detail}`)
      }),
    )
  }
  return { peer, ours }
}

async function groupBy(driver: Driver): Promise<void> {
  const rows = await driver.all(`select billing_cycle_id, count(*) as n, sum(commission) as commission,
    sum(platform_fee) as fee from sales where billing_cycle_id is not null group by billing_cycle_id`)
  if (rows.length !== MERCHANTS) throw new Error(`${rows.length} groups instead of ${MERCHANTS}`)
}

async function closeAll(platform: Platform, asOf: number): Promise<void> {
  const closed = await closeDueCycles(platform, { asOf })
  if (closed.length !== MERCHANTS) throw new Error(`closed ${closed.length} cycles instead of ${MERCHANTS}`)
}
