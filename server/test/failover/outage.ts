import { setTimeout as pause } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import type { FailoverWorld } from './failover-world.ts'
import { calmSecond, isTaken, type Sample } from './load.ts'

/** The worst of all outages, ms. */
export const worst = { answer: 0, requestsBack: 0, workerBack: 0, schedulersBack: 0 }

/**
 * Has `outage` take the database away and calls back when it is there again; then requires that all works again: both web
 * processes, a worker and both schedulers. Resolves to all requests since it began.
 */
export async function duringOutage(
  world: FailoverWorld,
  outage: (returned: () => void) => Promise<void>,
): Promise<Sample[]> {
  const { load } = world
  await calmSecond(load)
  await pause(world.random() * 500)
  const from = load.samples.length
  let returnedAt = Number.NaN
  let working = Promise.resolve<number[]>([])
  await outage(() => {
    returnedAt = performance.now()
    const measured = async (work: Promise<unknown>) => {
      await work
      return Math.round(performance.now() - returnedAt)
    }
    working = Promise.all([measured(world.untilOrderIsSold()), measured(world.runSchedules())])
    working.catch(() => undefined)
  })
  const [soldAfter = 0, scheduledAfter = 0] = await working
  await calmSecond(load)
  const samples = load.samples.slice(from)
  report('outage', samples, returnedAt)
  worst.workerBack = Math.max(worst.workerBack, soldAfter)
  worst.schedulersBack = Math.max(worst.schedulersBack, scheduledAfter)
  console.log(`a worker after ${soldAfter} ms, both schedulers after ${scheduledAfter} ms`)
  return samples
}

/**
 * Fails unless each request was taken, or refused with a time to come again while the database was away. `returnedAt`:
 * when it was there again; `null` when it was never away.
 */
export function report(what: string, samples: readonly Sample[], returnedAt: number | null): void {
  const refused = samples.filter((sample) => !isTaken(sample))
  const slowest = Math.max(...samples.map(({ ms }) => ms))
  const back = returnedAt === null ? 0 : Math.max(0, ...refused.map(({ at }) => at - returnedAt))
  console.log(
    `\n${what}: ${samples.length} requests, ${refused.length} refused, slowest ${Math.round(slowest)} ms, ` +
      `last refusal sent ${Math.round(back)} ms after the return`,
  )
  worst.answer = Math.max(worst.answer, Math.round(slowest))
  worst.requestsBack = Math.max(worst.requestsBack, Math.round(back))
  assert.ok(samples.length > 0)
  for (const sample of refused) {
    const isRefusal = returnedAt !== null && sample.status === 503 && sample.retryAfter >= 1
    assert.ok(isRefusal, `no good answer: ${JSON.stringify(sample)}`)
  }
}
