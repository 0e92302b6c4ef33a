import { createClickRecorder } from '../../../server/clicks/clicks.service.ts'
import { createInboxRecorder } from '../../../server/inbox/intake.service.ts'
import { createOrderReader } from '../../../server/jobs/order-reader.ts'
import { workOff } from '../../../server/jobs/worker.ts'
import type { Platform } from '../../../server/platform/platform.ts'
import { addLink, addLiveOffer, addMerchant } from '../../../server/proof/testbed/listings.ts'
import { addUser } from '../../../server/proof/testbed/people.ts'
import type { Bed } from '../bed.ts'
import { type Driver, openDriver } from '../driver.ts'
import { type Comparison, type Measurement, median } from '../figures.ts'
import { cpuOf, timed } from '../measure.ts'
import { storeOrder } from '../orders.ts'

const SHOPS = 20
const CREATORS = 3
const ORDERS = 8000
const AT_ONCE = 250
const PEER_BATCH = 500
const MUST = { kind: 'least', ratio: 0.25, aim: 0.5 } as const

interface Link {
  linkId: string
  storeId: string
}

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
      await fillInbox(platform, links, round * ORDERS)
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
      `${ORDERS} orders of 8 KB a round, ${SHOPS} stores, in the worker's own batches, alone in its process`,
    ],
  }
  return [found]
}

async function openShops(platform: Platform): Promise<Link[]> {
  const links: Link[] = []
  for (let shop = 0; shop < SHOPS; shop += 1) {
    const merchant = await addMerchant(platform)
    const offer = await addLiveOffer(platform, merchant)
    const store = await platform.database.reader
      .selectFrom('stores')
      .select('id')
      .where('merchant_id', '=', merchant.userId)
      .executeTakeFirstOrThrow()
    for (let creator = 0; creator < CREATORS; creator += 1) {
      const link = await addLink(platform, merchant, await addUser(platform, 'creator'), offer.id)
      links.push({ linkId: link.id, storeId: store.id })
    }
  }
  return links
}

async function fillInbox(platform: Platform, links: readonly Link[], first: number): Promise<void> {
  const clicks = createClickRecorder(platform)
  const inbox = createInboxRecorder(platform)
  for (let done = 0; done < ORDERS; done += AT_ONCE) {
    const now = platform.clock.now()
    await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, index) => {
        const number = first + done + index
        const { linkId, storeId } = links[number % links.length] as Link
        const click = platform.ids.next()
        await clicks.record({ id: click, linkId, tracked: true, kind: 'visit', createdAt: now })
        await inbox.record({
          source: 'store',
          scope: storeId,
          deliveryId: `bench-${number}`,
          topic: 'orders/paid',
          rawBody: Buffer.from(storeOrder(number, click, now)),
        })
      }),
    )
  }
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
