import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import BetterSqlite from 'better-sqlite3'
import * as assert from 'uvu/assert'
import { sqliteFileOf } from '../../platform/config.ts'
import { sqliteFault } from '../../platform/database/database-faults.ts'
import { openDirect } from '../failover/front.ts'
import { calmSecond, isTaken, Load } from '../failover/load.ts'
import { setScene } from '../kill/round.ts'
import { World } from '../kill/world.ts'
import type { TestDialect } from '../testkit/databases.ts'
import { seededRandom } from '../testkit/seeded-random.ts'
import { registerMerchant } from '../testkit/service-bed.ts'
import { openTcpProxy, type TcpProxy } from '../testkit/tcp-proxy.ts'

/** Most requests under way at a time, and a second. */
const CONNECTIONS = 50
const RATE = 200
/** An answer that has to wait for longer is a refusal, so that one comes while a stall of twice this still lasts. */
const DEADLINE_MS = 2000
const MOST_GROWTH_MB = 128

/** A server whose database can be made to stand still. */
interface Stalling {
  world: World
  stall(): Promise<void> | void
  flow(): void
  close(): Promise<void> | void
}

/** SQLite stalls while another connection holds the write lock. */
async function openLockedSqlite(): Promise<Stalling> {
  const world = await World.open('sqlite')
  const rival = new BetterSqlite(sqliteFileOf(world.databaseUrl) ?? '', { timeout: 0 })
  return {
    world,
    async stall() {
      // Waiting for its turn in SQLite itself would hold up this process, which measures.
      while (!hasBegun(rival)) await pause(1)
    },
    flow: () => void rival.exec('rollback'),
    close: () => void rival.close(),
  }
}

/** PostgreSQL stalls while the line to it passes nothing on. */
async function openStalledPostgres(): Promise<Stalling> {
  const opened = Promise.withResolvers<TcpProxy>()
  const world = await World.open('postgresql', async (databaseUrl) => {
    const through = new URL(databaseUrl)
    const proxy = await openTcpProxy({ host: through.hostname, port: Number(through.port) })
    opened.resolve(proxy)
    through.host = `127.0.0.1:${proxy.port}`
    return { DATABASE_URL: through.href }
  })
  const { stall, flow, cut } = await opened.promise
  return { world, stall, flow, close: cut }
}

/** The database stands still for so many ms: each answer is good, and all that was taken is on disk, once. */
export async function stallUnderLoad(dialect: TestDialect, stallMs: number) {
  const { world, stall, flow, close } = await (dialect === 'sqlite'
    ? openLockedSqlite()
    : openStalledPostgres())
  try {
    const url = await world.up()
    const scene = await world.prepare((platform) => setScene(platform, world.receiver.url))
    const token = await registerMerchant(url)
    const shop = { ...scene, slug: scene.links.ayesha.slug, token }
    const load = new Load(shop, openDirect([{ url }]), { rate: RATE, random: seededRandom(1) })
    load.mostUnderWay = CONNECTIONS
    load.start()
    await calmSecond(load)
    const before = residentMb(world)
    await stall()
    const stalledAt = performance.now()
    const peak = await highestWithin(world, stallMs)
    const flowsAt = performance.now()
    flow()
    await calmSecond(load)
    await load.stop()
    await load.front.close()
    for (const sample of load.samples) {
      const isRefusal = sample.status === 503 && sample.retryAfter >= 1
      assert.ok(isTaken(sample) || isRefusal, `no good answer: ${JSON.stringify(sample)}`)
    }
    const meanwhile = load.samples.filter(({ at, ms }) => at >= stalledAt && at + ms < flowsAt)
    const refused = meanwhile.filter(({ status }) => status === 503).length
    if (stallMs > 2 * DEADLINE_MS) assert.ok(refused > 0, 'nothing was refused while it stalled')
    const grownMb = Math.round(Math.max(peak, residentMb(world)) - before)
    assert.ok(grownMb < MOST_GROWTH_MB, `it grew by ${grownMb} MB`)
    await judgeRows(world, scene.storeId, load)
    const slowest = Math.round(Math.max(...load.samples.map(({ ms }) => ms)))
    return { answers: load.samples.length, refused, slowest, grownMb }
  } finally {
    await world.close()
    await close()
  }
}

function hasBegun(database: BetterSqlite.Database): boolean {
  try {
    database.exec('begin immediate')
    return true
  } catch (error) {
    if (sqliteFault(error)?.kind === 'contention') return false
    throw error
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
