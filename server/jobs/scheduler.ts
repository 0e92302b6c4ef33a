import { type ScheduledTask, schedule } from 'node-cron'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { sealLedger } from '../ledger/seals/seals.service.ts'
import { storeSeals } from '../ledger/seals/stored-seals.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import { expirePendingOrders } from '../pending-orders/pending-orders.service.ts'
import { withLongStatements } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { Processor } from '../processor/processor.ts'
import { flagUndelivered, flagUnknownRecords } from './processor-lists.ts'
import { isReconciliationDue, RECONCILIATION, reconcile } from './reconciliation.ts'
import { noteFailed, noteFinished, noteStarted } from './schedule-runs.service.ts'

export interface Scheduler {
  /** Waits for the runs under way and starts no others. */
  stop(): Promise<void>
}

interface Job {
  name: string
  /** Five cron fields, or `off`. */
  expression: string
  run(): Promise<Record<string, unknown>>
  /** Whether it runs at the start. Defaults to true. */
  isDueAtStart?(): Promise<boolean>
  /** The job that follows each success of this one, if it is on. */
  next?: string
}

/** How soon a failed run is repeated, ms: an outage over a daily time must not cost the day's billing. */
const RETRY_MS = 30_000
/** A run that starts later than this after its moment is made up: the process or its machine stood still, ms. */
const LATE_MS = 10_000
/** How often the time is compared with the planned moments. */
const WATCH_MS = 30_000

/** Throws if some failed, so that the run is repeated for them. */
function assertNoneFailed<Outcome extends { kind: string }>(
  outcomes: readonly Outcome[],
): readonly Outcome[] {
  const failed = outcomes.filter(({ kind }) => kind === 'failed').length
  if (failed > 0)
    throw new Error(`${failed} of ${outcomes.length} failed and are flagged; the others are done`)
  return outcomes
}

const EVERY_HOUR = '0 * * * *'
const EVERY_FIVE_MINUTES = '*/5 * * * *'

/**
 * Starts the scheduled jobs: closing billing cycles, paying creators, expiring pending orders, sealing the journal and reconciling with the
 * processor. A run that fails is repeated every `retryMs` until it succeeds. Moments that passed while the process stood still are made up by one run, unless
 * another scheduler has made that already. Each state change is a compare-and-set, so two schedulers do no harm.
 */
export function startScheduler(
  platform: Platform,
  processor: Processor,
  { retryMs = RETRY_MS }: { retryMs?: number } = {},
): Scheduler {
  const { config } = platform
  const underWay = new Set<Promise<void>>()
  const stopping = new AbortController()
  const jobs: Job[] = [
    {
      name: 'billing',
      expression: config.SCHEDULE_BILLING,
      run: async () => ({ cycles: assertNoneFailed(await closeDueCycles(platform)).length }),
    },
    {
      name: 'payouts',
      expression: config.SCHEDULE_PAYOUTS,
      run: async () => {
        const outcomes = assertNoneFailed(await runPayouts(platform, processor))
        return { payouts: outcomes.filter((outcome) => outcome.kind === 'paid_out').length }
      },
    },
    {
      name: RECONCILIATION,
      expression: config.SCHEDULE_RECONCILIATION,
      run: async () => {
        const outcome = await reconcile(platform, processor, { resume: true, signal: stopping.signal })
        const undelivered = await flagUndelivered(platform, processor)
        const unknown = await flagUnknownRecords(platform, processor, { signal: stopping.signal })
        return {
          compared: outcome.compared,
          differing: outcome.differing.length,
          unanswered: outcome.unanswered.length,
          complete: outcome.complete,
          ...(undelivered === null ? {} : { undelivered }),
          ...(unknown === null ? {} : { unknown: unknown.count }),
        }
      },
      // It looks up every record, so not every start may run it.
      isDueAtStart: () => isReconciliationDue(platform),
    },
    {
      name: 'pending-orders',
      expression: EVERY_HOUR,
      run: async () => ({ expired: await expirePendingOrders(platform) }),
    },
    {
      // Not a setting: seals are cheap, and without them the books prove nothing.
      name: 'seals',
      expression: EVERY_HOUR,
      run: async () => {
        const { seal, moved } = await sealLedger(platform)
        return { ledgers: moved, digest: seal?.digest ?? null }
      },
      next: 'seal-storage',
    },
    {
      // A separate job, so that seals are made while the storage is unavailable.
      name: 'seal-storage',
      expression: config.SEAL_STORAGE === undefined ? 'off' : EVERY_FIVE_MINUTES,
      run: async () => ({ stored: (await storeSeals(platform, stopping.signal)) ?? 0 }),
    },
  ]
  const isOn = (job: Job) => job.expression !== 'off'
  const retries = new Map<string, NodeJS.Timeout>()
  const start = (job: Job, cause: Cause) => {
    clearTimeout(retries.get(job.name))
    const run = runJob(platform, job, cause).then((succeeded) => {
      underWay.delete(run)
      if (stopping.signal.aborted) return
      const next = jobs.find((one) => one.name === job.next && isOn(one))
      const again = typeof cause === 'object' ? 'moment' : cause
      if (!succeeded)
        retries.set(
          job.name,
          setTimeout(() => void start(job, again), retryMs),
        )
      else if (next) void start(next, 'moment')
    })
    underWay.add(run)
    return run
  }
  const tasks = jobs.filter(isOn).map((job) => {
    const options = { name: job.name, timezone: config.BILLING_TIMEZONE, noOverlap: true }
    const run = () => {
      planned = task.getNextRun()
      return start(job, 'moment')
    }
    const task = schedule(job.expression, run, options)
    let planned = task.getNextRun()
    const catchUp = () => {
      if (planned === null || Date.now() - planned.getTime() <= LATE_MS) return
      const missed = lastMoment(task, planned)
      planned = task.getNextRun()
      void start(job, { missed })
    }
    task.on('execution:missed', catchUp)
    // Timers stand still with a suspended machine, so node-cron would hear of a missed moment hours late.
    const watch = setInterval(catchUp, WATCH_MS)
    return { task, watch }
  })
  // Catches up with what became due while no scheduler ran; each job does only what is due.
  for (const job of jobs.filter(isOn)) void start(job, 'start')
  return {
    async stop() {
      stopping.abort()
      for (const timer of retries.values()) clearTimeout(timer)
      for (const { watch } of tasks) clearInterval(watch)
      await Promise.all(tasks.map(({ task }) => task.destroy()))
      await Promise.all(underWay)
    },
  }
}

/** What a job runs for: the start of the scheduler, a moment of its schedule, or moments that passed, with the last of them (epoch ms). */
type Cause = 'start' | 'moment' | { missed: number }

/** The last moment of the schedule that passed, epoch ms; for uneven steps at least the `planned` one. */
function lastMoment(task: ScheduledTask, planned: Date): number {
  const [next, second] = task.getNextRuns(2).map((date) => date.getTime())
  return Math.max(planned.getTime(), next && second ? next - (second - next) : 0)
}

/** Runs a job once; returns whether it succeeded. */
async function runJob(platform: Platform, job: Job, cause: Cause): Promise<boolean> {
  try {
    if (cause === 'start' && (await job.isDueAtStart?.()) === false) return true
    // The clocks of two machines may differ a little.
    const since = typeof cause === 'object' ? cause.missed - LATE_MS : undefined
    if (!(await noteStarted(platform, job.name, since))) return true
    const outcome = await withLongStatements(() => job.run())
    await noteFinished(platform, job.name, outcome)
    const level = Object.values(outcome).some((count) => typeof count === 'number' && count > 0)
      ? 'info'
      : 'debug'
    platform.log[level]({ job: job.name, ...outcome }, 'scheduled job done')
    return true
  } catch (error) {
    platform.log.error({ err: error, job: job.name }, 'scheduled job failed; it is repeated within a minute')
    const reason = error instanceof Error ? error.message : String(error)
    // Without a database there is nothing to record it in.
    await noteFailed(platform, job.name, reason).catch(() => {})
    return false
  }
}
