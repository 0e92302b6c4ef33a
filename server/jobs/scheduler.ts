import { type ScheduledTask, schedule } from 'node-cron'
import { closeDueCycles } from '../billing/billing.service.ts'
import { runPayouts } from '../payouts/payouts.service.ts'
import type { Platform } from '../platform/platform.ts'
import type { Processor } from '../processor/port.ts'
import { noteFinished, noteStarted } from './schedule-runs.store.ts'

export interface Scheduler {
  /** Lets a run that is under way finish, and starts no other. */
  stop(): Promise<void>
}

interface Job {
  name: string
  /** Five cron fields, or `off`. */
  expression: string
  run(): Promise<Record<string, unknown>>
}

/**
 * Starts the scheduled jobs: closing billing cycles and paying creators. Each state change is a compare-and-set, so two
 * schedulers at once do no harm.
 */
export function startScheduler(platform: Platform, processor: Processor): Scheduler {
  const { config } = platform
  const underWay = new Set<Promise<void>>()
  const jobs: Job[] = [
    {
      name: 'billing',
      expression: config.SCHEDULE_BILLING,
      run: async () => ({ cycles: (await closeDueCycles(platform)).length }),
    },
    {
      name: 'payouts',
      expression: config.SCHEDULE_PAYOUTS,
      run: async () => {
        const outcomes = await runPayouts(platform, processor)
        return { payouts: outcomes.filter((outcome) => outcome.kind === 'paid_out').length }
      },
    },
  ]
  const start = (job: Job) => {
    const run = runJob(platform, job).finally(() => underWay.delete(run))
    underWay.add(run)
    return run
  }
  const tasks: ScheduledTask[] = jobs
    .filter((job) => job.expression !== 'off')
    .map((job) =>
      schedule(job.expression, () => start(job), {
        name: job.name,
        timezone: config.BILLING_TIMEZONE,
        noOverlap: true,
      }),
    )
  // What fell due while no scheduler ran is made up for at once: both jobs only do what is due.
  for (const job of jobs) if (job.expression !== 'off') void start(job)
  return {
    async stop() {
      await Promise.all(tasks.map((task) => task.destroy()))
      await Promise.all(underWay)
    },
  }
}

async function runJob(platform: Platform, job: Job): Promise<void> {
  try {
    await noteStarted(platform, job.name)
    const outcome = await job.run()
    await noteFinished(platform, job.name, outcome)
    platform.log.info({ job: job.name, ...outcome }, 'scheduled job done')
  } catch (error) {
    platform.log.error({ err: error, job: job.name }, 'scheduled job failed; it runs again at its next time')
  }
}
