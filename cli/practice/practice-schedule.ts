import type { App } from '../../server/app.ts'
import { listCycles } from '../../server/billing/billing.service.ts'
import { closeDueCycles } from '../../server/billing/close-cycle.service.ts'
import { runPayouts } from '../../server/payouts/payout-run.service.ts'

/**
 * A schedule beside the real one, for practice: a round ends the months of merchants that sold, as if their time had come, and makes
 * payouts of what earlier rounds charged.
 */
export function startPracticeSchedule({ platform, processor }: App, everyMs: number) {
  const merchants = new Set<string>()
  let hasSold = false
  let round = Promise.resolve()
  const work = async () => {
    if (hasSold) await runPayouts(platform, processor)
    for (const merchantId of merchants) {
      merchants.delete(merchantId)
      const [open] = await listCycles(platform, { merchantId, state: 'open', limit: 1, before: null })
      if (open) await closeDueCycles(platform, { asOf: open.period_end, merchantId })
      hasSold = true
    }
  }
  const timer = setInterval(() => {
    round = round
      .then(work)
      .catch((error: unknown) =>
        platform.log.error({ err: error }, 'a round of the practice schedule failed'),
      )
  }, everyMs)
  return {
    /** The merchant's month ends at the next round. */
    endMonthOf: (merchantId: string) => void merchants.add(merchantId),
    async stop() {
      clearInterval(timer)
      await round
    },
  }
}
