import { readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { setScene } from '../kill/round.ts'
import type { World } from '../kill/world.ts'
import type { TestDialect } from '../testkit/databases.ts'
import { type Load, percentile, type Sample, startLoad } from './load.ts'
import { openLockedSqlite, openStalledPostgres } from './stalling.ts'

const CONNECTIONS = 50
const PACE_MS = 200
/** How fast an answer comes while the database is well, p99; and how soon one comes at the latest while it is not. */
const CALM_P99_MS = 250
const CALM_WINDOWS = 12
const DEADLINE_MS = 2000
/** For the way to the clock and back, beside what the machine itself keeps this process waiting. */
const SLACK_MS = 500
/** With more programs than this to each core, how long an answer takes says nothing of the service. */
const BUSY_LOAD = 1.5
const BUSY_SLACK_MS = 2000
const BACK_WITHIN_MS = 10_000
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
    const shop = { slug: scene.links.ayesha.slug, domain: scene.domain, secret: scene.secret }
    const load = startLoad(url, shop, CONNECTIONS, PACE_MS)
    const calmP99 = await calmWindow(load)
    const before = residentMb(world)
    await stalling.stall()
    const stalledAt = performance.now()
    const peak = await highestWithin(world, stallMs)
    await stalling.flow()
    await servesAgain(load)
    await load.stop()
    const grownMb = Math.round(Math.max(peak, residentMb(world)) - before)
    judge(load.samples, stalledAt, load.lag())
    assert.ok(grownMb < MOST_GROWTH_MB, `it grew by ${grownMb} MB`)
    await judgeRows(world, scene.storeId, load.samples)
    const stalled = load.samples.filter((sample) => sample.at + sample.ms >= stalledAt)
    return {
      answers: load.samples.length,
      calmP99: Math.round(calmP99),
      refused: stalled.filter(({ status }) => status === 503).length,
      slowest: Math.round(Math.max(...stalled.map(({ ms }) => ms))),
      grownMb,
    }
  } finally {
    await stalling.close()
  }
}

/** The p99 of a calm second: the first of so many that is fast enough, since other programs may use the machine. */
async function calmWindow(load: Load): Promise<number> {
  let p99 = Number.NaN
  await pause(1000)
  for (let window = 0; window < CALM_WINDOWS; window += 1) {
    const from = performance.now()
    await pause(1000)
    const calm = load.samples.filter((sample) => sample.at >= from)
    assert.ok(calm.every(isTaken), JSON.stringify(calm.find((sample) => !isTaken(sample))))
    p99 = percentile(
      calm.map(({ ms }) => ms),
      0.99,
    )
    if (p99 < CALM_P99_MS) return p99
  }
  if (!isBusy()) throw new Error(`p99 ${p99} ms while nothing was the matter`)
  console.log(`p99 ${Math.round(p99)} ms on a machine that is busy with other things: not judged`)
  return p99
}

/** Each answer came in time: taken, or refused with a time to come again. */
function judge(samples: readonly Sample[], stalledAt: number, lag: number): void {
  const slack = SLACK_MS + 3 * lag + (isBusy() ? BUSY_SLACK_MS : 0)
  for (const sample of samples) {
    const about = JSON.stringify({ ...sample, at: Math.round(sample.at - stalledAt), lag })
    // What came before is the start, when nothing is warm.
    const late = sample.at >= stalledAt - 1000 && sample.ms > DEADLINE_MS + slack
    assert.not.ok(late, `too late: ${about}`)
    assert.ok(
      isTaken(sample) || (sample.status === 503 && sample.retryAfter >= 1),
      `no good answer: ${about}`,
    )
  }
}

/** Waits for half a second in which everything is taken. */
async function servesAgain(load: Load): Promise<void> {
  const end = performance.now() + BACK_WITHIN_MS
  while (performance.now() < end) {
    const from = performance.now()
    await pause(500)
    const last = load.samples.filter(({ at }) => at >= from)
    if (last.length > 0 && last.every(isTaken)) return
  }
  throw new Error(`it does not serve again within ${BACK_WITHIN_MS} ms`)
}

function isBusy(): boolean {
  return (loadavg()[0] ?? 0) > BUSY_LOAD * availableParallelism()
}

function isTaken({ kind, status }: Sample): boolean {
  return status === (kind === 'click' ? 302 : 200)
}

/** All that was taken is on disk and has become exactly one sale an order. */
async function judgeRows(world: World, storeId: string, samples: readonly Sample[]): Promise<void> {
  for (const { kind, id } of samples.filter(isTaken)) {
    world.acknowledged[kind === 'click' ? 'clicks' : 'deliveries'].add(id)
  }
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
