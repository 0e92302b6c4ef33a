import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { openDirect } from '../failover/front.ts'
import { calmSecond, isTaken, Load, type Sample } from '../failover/load.ts'
import { setScene } from '../kill/round.ts'
import type { World } from '../kill/world.ts'
import type { TestDialect } from '../testkit/databases.ts'
import { seededRandom } from '../testkit/seeded-random.ts'
import { registerMerchant } from '../testkit/service-bed.ts'
import { openLockedSqlite, openStalledPostgres } from './stalling.ts'

/** Most requests under way at a time, and a second. */
const CONNECTIONS = 50
const RATE = 200
/** An answer that has to wait for longer is a refusal, so that one comes while a stall of twice this still lasts. */
const DEADLINE_MS = 2000
const MOST_GROWTH_MB = 128

/** What a stall of so many ms did to the answers. */
export interface StallReport {
  answers: number
  calmP99: number
  refused: number
  slowest: number
  grownMb: number
}

export async function stallUnderLoad(dialect: TestDialect, stallMs: number): Promise<StallReport> {
  const stalling = dialect === 'sqlite' ? await openLockedSqlite() : await openStalledPostgres()
  const { world } = stalling
  try {
    const url = await world.up()
    const scene = await world.prepare((platform) => setScene(platform, world.receiver.url))
    const token = await registerMerchant(url)
    const shop = { ...scene, slug: scene.links.ayesha.slug, token }
    const load = new Load(shop, openDirect([{ url }]), { rate: RATE, random: seededRandom(1) })
    load.mostUnderWay = CONNECTIONS
    load.start()
    const calm = await calmSecond(load)
    const before = residentMb(world)
    await stalling.stall()
    const stalledAt = performance.now()
    const peak = await highestWithin(world, stallMs)
    const flowsAt = performance.now()
    await stalling.flow()
    await calmSecond(load)
    await load.stop()
    await load.front.close()
    const grownMb = Math.round(Math.max(peak, residentMb(world)) - before)
    judge(load.samples)
    const meanwhile = load.samples.filter(({ at, ms }) => at >= stalledAt && at + ms < flowsAt)
    if (stallMs > 2 * DEADLINE_MS)
      assert.ok(
        meanwhile.some(({ status }) => status === 503),
        'nothing was refused while it stalled',
      )
    assert.ok(grownMb < MOST_GROWTH_MB, `it grew by ${grownMb} MB`)
    await judgeRows(world, scene.storeId, load)
    const stalled = load.samples.filter((sample) => sample.at + sample.ms >= stalledAt)
    return {
      answers: load.samples.length,
      calmP99: percentile(calm, 0.99),
      refused: stalled.filter(({ status }) => status === 503).length,
      slowest: Math.round(Math.max(...stalled.map(({ ms }) => ms))),
      grownMb,
    }
  } finally {
    await stalling.close()
  }
}

/** Each answer is good: taken, or refused with a time to come again. */
function judge(samples: readonly Sample[]): void {
  for (const sample of samples) {
    const isRefusal = sample.status === 503 && sample.retryAfter >= 1
    assert.ok(isTaken(sample) || isRefusal, `no good answer: ${JSON.stringify(sample)}`)
  }
}

/** All that was taken is on disk and has become exactly one sale an order. */
async function judgeRows(world: World, storeId: string, load: Load): Promise<void> {
  for (const id of load.clicks) world.acknowledged.clicks.add(id)
  for (const id of load.acknowledged.keys()) world.acknowledged.deliveries.add(id)
  await world.settleDown(async () => true)
  await world.verify()
  const { events, sales } = await world.look(async ({ database: { reader } }) => ({
    events: await reader.selectFrom('inbound_events').select('id').where('scope', '=', storeId).execute(),
    sales: await reader.selectFrom('sales').select('id').where('store_id', '=', storeId).execute(),
  }))
  assert.is(sales.length, events.length)
}

function percentile(samples: readonly Sample[], part: number): number {
  const sorted = samples.map(({ ms }) => Math.round(ms)).sort((a, b) => a - b)
  return sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN
}

function residentMb(world: World): number {
  const status = readFileSync(`/proc/${world.server.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}

async function highestWithin(world: World, ms: number): Promise<number> {
  const end = performance.now() + ms
  let highest = 0
  while (performance.now() < end) {
    highest = Math.max(highest, residentMb(world))
    await pause(Math.max(0, Math.min(100, end - performance.now())))
  }
  return highest
}
