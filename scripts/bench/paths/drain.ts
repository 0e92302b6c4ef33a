import { createOrderReader } from '../../../server/jobs/order-reader.ts'
import { workOff } from '../../../server/jobs/worker.ts'
import type { Platform } from '../../../server/platform/platform.ts'
import type { Bed } from '../bed.ts'
import { type Driver, openDriver } from '../driver.ts'
import { type Comparison, type Measurement, median } from '../figures.ts'
import { cpuOf, timed } from '../measure.ts'
import { openShops, pileOrders } from '../pile-orders.ts'

const ORDERS = 8000
const PEER_BATCH = 500
const MUST = { kind: 'least', ratio: 0.25, aim: 0.5 } as const

/** Orders that wait in the inbox, from twenty stores: read, decided, booked and marked done. */
export async function benchDrain(bed: Bed): Promise<(Comparison | Measurement)[]> {
  const { platform } = bed.app
  const links = await openShops(platform)
  const driver = openDriver(bed.url)
  const reader = createOrderReader(platform)
  const peer: number[] = []
  const ours: number[] = []
  const cpu = { peer: [] as number[], ours: [] as number[] }
  try {
    // The first one warms up.
    for (let round = 0; round <= bed.rounds; round += 1) {
      const from = platform.ids.next()
      await pileOrders(platform, links, { first: round * ORDERS, count: ORDERS })
      let [reading, draining] = [0, 0]
      const readingCpu = await cpuOf(async () => {
        reading = await timed(() => readBodies(driver, from))
      })
      const drainingCpu = await cpuOf(async () => {
        draining = await timed(() => workOff(bed.app, reader))
      })
      await assertAccepted(platform, (round + 1) * ORDERS)
      if (round === 0) continue
      peer.push((ORDERS / reading) * 1000)
      ours.push((ORDERS / draining) * 1000)
      cpu.peer.push(readingCpu / ORDERS)
      cpu.ours.push(drainingCpu / ORDERS)
    }
  } finally {
    await reader.close()
    await driver.close()
  }
  const found: Comparison = {
    path: 'drain',
    database: bed.dialect,
    against: 'reading the bodies, JSON.parse',
    unit: 'orders/s',
    peer,
    ours,
    must: MUST,
    cpu: { ours: median(cpu.ours), peer: median(cpu.peer) },
    notes: [
      `${ORDERS} orders of 8 KB a round, twenty stores, in the worker's own batches, alone in its process`,
    ],
  }
  return [found]
}

async function readBodies(driver: Driver, from: string): Promise<void> {
  let last = from
  let parsed = 0
  for (;;) {
    const rows = await driver.all<{ event_id: string; body: string }>(
      'select event_id, body from inbound_bodies where event_id > ? order by event_id limit ?',
      [last, PEER_BATCH],
    )
    for (const row of rows) if ((JSON.parse(row.body) as { id?: number }).id) parsed += 1
    last = rows.at(-1)?.event_id ?? last
    if (rows.length < PEER_BATCH) break
  }
  if (parsed !== ORDERS) throw new Error(`read ${parsed} bodies instead of ${ORDERS}`)
}

async function assertAccepted({ database }: Platform, wanted: number): Promise<void> {
  const { n } = await database.reader
    .selectFrom('sales')
    .select((select) => select.fn.countAll<number>().as('n'))
    .where('acceptance_status', '=', 'accepted')
    .executeTakeFirstOrThrow()
  if (n !== wanted) throw new Error(`${n} accepted sales instead of ${wanted}`)
}
