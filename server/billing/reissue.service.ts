import { recordAudit } from '../moderation/audit.service.ts'
import { closeFlag } from '../moderation/flag-queue.service.ts'
import type { Queries, Tx } from '../platform/database.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { listAttempts } from '../processor/attempts.service.ts'
import type { LookupOutcome, Processor } from '../processor/port.ts'
import { decideSecondAttempt } from '../processor/second-attempt.rule.ts'
import { type CycleRow, findCycle, lockCycle } from './billing.store.ts'
import { invoiceOf, queueInvoice } from './queue-invoices.service.ts'

export interface Reissue {
  cycleId: string
  /** A user's id, or `OPERATOR`. */
  actor: string
  reason: string | null
}

export interface ReissuedInvoice {
  cycle: CycleRow
  attemptId: string
  /** The invoice that the processor holds under this cycle already, which is taken over. */
  adopts: string | null
}

/**
 * Has the invoice of a closed cycle asked for anew, after the processor has finally refused it: looked up first, then a
 * new attempt with a new key and the merchant's present name and address. Refuses with `not_found`, `conflict` (there is
 * nothing to reissue, or the processor holds something else) and `unavailable` (it cannot be asked).
 */
export async function reissueInvoice(
  platform: Platform,
  processor: Processor,
  reissue: Reissue,
): Promise<ReissuedInvoice> {
  const { cycleId, actor, reason } = reissue
  const { reader, dialect } = platform.database
  const found = isId(cycleId) ? await findCycle(reader, cycleId) : undefined
  await judge(reader, cycleId, found, null)
  const lookup = await processor.findInvoices(cycleId)
  return platform.database.transaction(async (tx) => {
    const locked = await lockCycle(tx, dialect, cycleId)
    const { cycle, adopts, refused } = await judge(tx, cycleId, locked, lookup)
    const attemptId = await queueInvoice(platform, tx, invoiceOf(cycle), { lookUpFirst: true })
    await settleRefusalFlag(platform, tx, cycle.id)
    await recordAudit(platform, tx, {
      actor,
      action: 'billing.reissue',
      subjectType: 'billing_cycle',
      subjectId: cycle.id,
      reason,
      before: { attempt_id: refused?.id ?? null, refused_because: refused?.detail ?? null },
      after: { attempt_id: attemptId, invoice_at_the_processor: adopts },
    })
    return { cycle, attemptId, adopts }
  })
}

async function judge(db: Queries, id: string, cycle: CycleRow | undefined, lookup: LookupOutcome | null) {
  if (!cycle) throw new Refusal('not_found', `There is no billing cycle ${id}.`)
  if (cycle.state === 'open')
    throw new Refusal('conflict', 'This cycle is open: it is invoiced once it closes.')
  if (cycle.state === 'charged') throw new Refusal('conflict', 'This cycle is paid.')
  const attempts = await listAttempts(db, 'invoice', cycle.id)
  const states = attempts.map((attempt) => attempt.state)
  const decision = decideSecondAttempt({ attempts: states, amount: cycle.amount_due, lookup })
  if (decision.kind === 'refused') throw new Refusal(decision.code, decision.detail)
  return { cycle, adopts: decision.adopts, refused: attempts.at(-1) }
}

async function settleRefusalFlag(platform: Platform, tx: Tx, cycleId: string): Promise<void> {
  const subject = { kind: 'processor_refusal', subjectType: 'billing_cycle', subjectId: cycleId } as const
  await closeFlag(platform, tx, subject, 'The invoice was asked for anew.')
}
