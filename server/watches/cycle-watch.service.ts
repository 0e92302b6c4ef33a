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

import { isOverdue } from './patterns.rule.ts'
import { chargedCycles, cyclesClosedBefore, type UnpaidCycle } from './watches.store.ts'

const KIND = 'cycle_unpaid'

/** Flags closed cycles whose payment is overdue, and resolves the flags of those that were paid. */
export async function watchCycles(platform: Platform): Promise<boolean> {
  const now = platform.clock.now()
  const { FLAG_CYCLE_UNPAID_DAYS: graceDays } = platform.config
  await platform.database.transaction(async (tx) => {
    for (const cycle of await cyclesClosedBefore(tx, now - graceDays * DAY_MS, KIND)) {
      const { closed_at: closedAt, resolved_at: resolvedAt } = cycle
      if (closedAt === null || !isOverdue({ closedAt, resolvedAt, now, graceDays })) continue
      await flagCycle(platform, tx, cycle, closedAt)
      await publishOverdue(platform, tx, cycle.id)
    }
    const flagged = (await openFlags(tx, KIND)).map((flag) => flag.subject_id)
    for (const subjectId of await chargedCycles(tx, flagged)) {
      await closeFlag(platform, tx, { kind: KIND, subjectType: 'billing_cycle', subjectId }, 'It was paid.')
    }
  })
  return false
}

async function publishOverdue(platform: Platform, tx: Tx, cycleId: string): Promise<void> {
  const cycle = await getCycle(tx, cycleId)
  if (!cycle) throw new Error(`there is no billing cycle ${cycleId}`)
  const { merchant_id: accountId, id: subjectId } = cycle
  const problem = rowProblem(platform.keys, 'billing_cycles', cycle)
  if (problem !== null) await flagForgedRows(platform, tx, 'billing_cycles', [{ id: subjectId, problem }])
  await publishEvents(platform, tx, [
    {
      type: 'billing_cycle.overdue',
      accountId,
      subjectId,
      data: wireCycle(withCheckedLink(platform, cycle)),
    },
  ])
}

function flagCycle(platform: Platform, tx: Tx, cycle: UnpaidCycle, closedAt: number): Promise<void> {
  return raiseFlag(platform, tx, {
    kind: KIND,
    subjectType: 'billing_cycle',
    subjectId: cycle.id,
    summary: `A merchant has not paid a billing cycle of Rs ${formatMoney(cycle.amount_due)} for ${platform.config.FLAG_CYCLE_UNPAID_DAYS} days.`,
    evidence: {
      merchant_id: cycle.merchant_id,
      amount_due: formatMoney(cycle.amount_due),
      closed_at: isoTime(closedAt),
      processor_invoice_id: cycle.processor_invoice_id,
    },
  })
}
