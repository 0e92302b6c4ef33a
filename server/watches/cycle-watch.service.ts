import { DAY_MS } from '../../shared/durations.ts'
import { formatMoney } from '../../shared/money.ts'
import { getCycle, withCheckedLink } from '../billing/billing.service.ts'
import { wireCycle } from '../billing/billing-wire.ts'
import { closeFlag, openFlags, raiseFlag } from '../flags/flags.service.ts'
import { flagForgedRows } from '../flags/forged-rows.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Tx } from '../platform/database/database.ts'
import { rowProblem } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { chargedCycles, unpaidCycles } from './watches.store.ts'

const UNPAID = { kind: 'cycle_unpaid', subjectType: 'billing_cycle' } as const

/**
 * Flags closed cycles that have not been paid for FLAG_CYCLE_UNPAID_DAYS, and again that long after a flag was resolved; resolves the flags of
 * those that were paid.
 */
export async function watchCycles(platform: Platform): Promise<boolean> {
  const { clock, config, database } = platform
  const graceMs = config.FLAG_CYCLE_UNPAID_DAYS * DAY_MS
  await database.transaction(async (tx) => {
    for (const { id } of await unpaidCycles(tx, clock.now() - graceMs, UNPAID.kind)) {
      await flagOverdue(platform, tx, id)
    }
    const flagged = (await openFlags(tx, UNPAID.kind)).map((flag) => flag.subject_id)
    for (const { id: subjectId } of await chargedCycles(tx, flagged)) {
      await closeFlag(platform, tx, { ...UNPAID, subjectId }, 'It was paid.')
    }
  })
  return false
}

async function flagOverdue(platform: Platform, tx: Tx, subjectId: string): Promise<void> {
  const cycle = await getCycle(tx, subjectId)
  if (!cycle) return
  const { merchant_id, closed_at, processor_invoice_id } = cycle
  const amount_due = formatMoney(cycle.amount_due)
  await raiseFlag(platform, tx, {
    ...UNPAID,
    subjectId,
    summary: `A merchant has not paid a billing cycle of Rs ${amount_due} for ${platform.config.FLAG_CYCLE_UNPAID_DAYS} days.`,
    evidence: { merchant_id, amount_due, closed_at: isoTime(closed_at ?? 0), processor_invoice_id },
  })
  const problem = rowProblem(platform.keys, 'billing_cycles', cycle)
  if (problem !== null) await flagForgedRows(platform, tx, 'billing_cycles', [{ id: subjectId, problem }])
  const data = wireCycle(platform, withCheckedLink(platform, cycle))
  const event = { type: 'billing_cycle.overdue', accountId: merchant_id, subjectId, data } as const
  await publishEvents(platform, tx, [event])
}
