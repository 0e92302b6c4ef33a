import { createOrderReader } from '../../../server/jobs/order-reader.ts'
import { drainUntilIdle } from '../../../server/jobs/worker.ts'
import type { Platform } from '../../../server/platform/platform.ts'
import type { Bed } from '../bed.ts'
import { calmRounds } from '../calm-rounds.ts'
import { type Driver, openDriver } from '../driver.ts'
import { type Comparison, type Measurement, median } from '../figures.ts'
import { cpuOf, timed } from '../measure.ts'
import { ALL_TOPICS, openShops, pileOrders } from '../pile-orders.ts'

const ORDERS = 8000
const PEER_BATCH = 500
const MUST = { kind: 'least', ratio: 0.16 } as const
/** A store that reports its orders from their placement on costs at most 2.2 times as much for each that is paid. */
const MUST_ALL_TOPICS = { kind: 'least', ratio: 1 / 2.2 } as const
/** Of a store's orders, one in so many leads to a link: far more than usual. */
const LINKED_EVERY = 4

/** Orders that wait in the inbox, from twenty stores: read, decided, booked and marked done. */
export async function benchDrain(bed: Bed): Promise<(Comparison | Measurement)[]> {
  const { platform } = bed.app
  const links = await openShops(platform)
  const driver = openDriver(bed.url)
  const reader = createOrderReader(platform)
  const round = async (place: number) => {
    const from = platform.ids.next()
    const first = 3 * place * ORDERS
    await pileOrders(platform, links, { first, count: ORDERS })
    const reading = await bothTimes(() => readBodies(driver, from))
    const draining = await bothTimes(() => drainUntilIdle(bed.app, { reader }))
    const mixed = { count: ORDERS, linkedEvery: LINKED_EVERY }
    await pileOrders(platform, links, { first: first + ORDERS, ...mixed })
    const paidOnly = await bothTimes(() => drainUntilIdle(bed.app, { reader }))
    await pileOrders(platform, links, { first: first + 2 * ORDERS, ...mixed, topics: ALL_TOPICS })
    const allTopics = await bothTimes(() => drainUntilIdle(bed.app, { reader }))
    await assertAccepted(platform, (place + 1) * (ORDERS + (2 * ORDERS) / LINKED_EVERY))
    return { peer: reading, ours: draining, paidOnly, allTopics }
  }
  try {
    // The first one warms up.
    await round(0)
    const { rounds, calm } = await calmRounds(bed.rounds, (place) => round(place + 1))
    return [
      {
        path: 'drain',
        database: bed.dialect,
        against: 'reading the bodies, JSON.parse',
        unit: 'orders/s',
        peer: rounds.map(({ peer }) => (ORDERS / peer.ms) * 1000),
        ours: rounds.map(({ ours }) => (ORDERS / ours.ms) * 1000),
        must: MUST,
        cpu: {
          ours: median(rounds.map(({ ours }) => ours.cpu / ORDERS)),
          peer: median(rounds.map(({ peer }) => peer.cpu / ORDERS)),
        },
        calm,
        notes: [
          `${ORDERS} orders of 8 KB a round, twenty stores, in the worker's own batches, alone in its process`,
        ],
      },
      {
        path: 'drain, all topics',
        database: bed.dialect,
        against: 'orders/paid alone',
        unit: 'orders/s',
        peer: rounds.map(({ paidOnly }) => (ORDERS / paidOnly.ms) * 1000),
        ours: rounds.map(({ allTopics }) => (ORDERS / allTopics.ms) * 1000),
        must: MUST_ALL_TOPICS,
        cpu: {
          ours: median(rounds.map(({ allTopics }) => allTopics.cpu / ORDERS)),
          peer: median(rounds.map(({ paidOnly }) => paidOnly.cpu / ORDERS)),
        },
        calm,
        notes: [
          `orders/create, orders/updated and orders/paid of each order, one after the other; one order in ${LINKED_EVERY} leads to a link`,
        ],
      },
    ]
  } finally {
    await reader.close()
    await driver.close()
  }
}

/** What `work` takes, ms, and of the processor, µs. */
async function bothTimes(work: () => Promise<unknown>): Promise<{ ms: number; cpu: number }> {
  let ms = 0
  const cpu = await cpuOf(async () => {
    ms = await timed(work)
  })
  return { ms, cpu }
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
