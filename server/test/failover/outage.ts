import { setTimeout as pause } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import type { FailoverWorld } from './failover-world.ts'
import { isTaken, type Sample } from './load.ts'

/** How soon an answer comes at the latest, and how soon everything works once the database is back, ms. */
const DEADLINE_MS = 2000
const BACK_WITHIN_MS = 2000
/** For the way to the clock and back, beside what the machine itself keeps this process waiting. */
const SLACK_MS = 500
const CALM_MS = 1000
const STEADY_WITHIN_MS = 15_000
/** Long enough to see that nothing fails after the return. */
const WATCH_MS = BACK_WITHIN_MS + 1500

/** The worst of all outages, ms. */
export const worst = { answer: 0, requestsBack: 0, workerBack: 0, schedulersBack: 0 }

/** Waits for a second in which every request is taken, fast. */
export async function steady({ load }: FailoverWorld): Promise<void> {
  const end = performance.now() + STEADY_WITHIN_MS
  for (;;) {
    const from = performance.now()
    await pause(CALM_MS)
    const last = load.samples.filter(({ at }) => at >= from)
    if (last.length > 0 && load.open < 50 && last.every((sample) => isTaken(sample) && sample.ms < 500))
      return
    if (performance.now() > end) {
      throw new Error(`not steady: ${JSON.stringify(last.find((sample) => !isTaken(sample)) ?? last.at(-1))}`)
    }
  }
}

/**
 * Has `outage` take the database away and calls back when it is there again; then requires that all works again in time: both web
 * processes, a worker and both schedulers. Returns the requests of that time.
 */
export async function duringOutage(
  world: FailoverWorld,
  outage: (returned: () => void) => Promise<void>,
): Promise<Sample[]> {
  const { load } = world
  await steady(world)
  load.lag()
  const from = load.samples.length
  let returnedAt = Number.NaN
  let working = Promise.resolve<number[]>([])
  await outage(() => {
    returnedAt = performance.now()
    const measured = async (work: Promise<unknown>) => {
      await work
      return Math.round(performance.now() - returnedAt)
    }
    working = Promise.all([measured(world.untilOrderIsSold(20_000)), measured(world.runSchedules())])
    working.catch(() => undefined)
  })
  const [soldAfter = 0, scheduledAfter = 0] = await working
  await pause(Math.max(0, returnedAt + WATCH_MS - performance.now()))
  const samples = load.samples.slice(from)
  const slack = SLACK_MS + 3 * load.lag()
  report('outage', samples, returnedAt, slack)
  worst.workerBack = Math.max(worst.workerBack, soldAfter)
  worst.schedulersBack = Math.max(worst.schedulersBack, scheduledAfter)
  console.log(`a worker after ${soldAfter} ms, both schedulers after ${scheduledAfter} ms`)
  if (soldAfter > BACK_WITHIN_MS + slack) await world.explain()
  for (const ms of [soldAfter, scheduledAfter])
    assert.ok(ms < BACK_WITHIN_MS + slack, `works again after ${ms} ms`)
  return samples
}

/**
 * Fails unless each request was taken, or refused in time with a time to come again while the database was away. `returnedAt`:
 * when it was there again; `null` when it was never away.
 */
export function report(
  what: string,
  samples: readonly Sample[],
  returnedAt: number | null,
  slack: number,
): void {
  const refused = samples.filter((sample) => !isTaken(sample))
  const slowest = Math.max(...samples.map(({ ms }) => ms))
  const back = returnedAt === null ? 0 : Math.max(0, ...refused.map(({ at }) => at - returnedAt))
  console.log(
    `\n${what}: ${samples.length} requests, ${refused.length} refused, slowest ${Math.round(slowest)} ms, ` +
      `last refusal sent ${Math.round(back)} ms after the return, slack ${slack} ms`,
  )
  worst.answer = Math.max(worst.answer, Math.round(slowest))
  worst.requestsBack = Math.max(worst.requestsBack, Math.round(back))
  assert.ok(samples.length > 0)
  for (const sample of refused) {
    const isRefusal = returnedAt !== null && sample.status === 503 && sample.retryAfter >= 1
    assert.ok(isRefusal, `no good answer: ${JSON.stringify(sample)}`)
  }
  for (const sample of samples) {
    assert.ok(sample.ms < DEADLINE_MS + slack, `too late: ${JSON.stringify(sample)}`)
  }
  assert.ok(back < BACK_WITHIN_MS + slack, `requests are refused ${back} ms after the return`)
}
