import { formatMoney } from '../../shared/money.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import type { EventOutcome } from '../inbox/inbox.service.ts'
import type { Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { markFailed, wasRefused } from '../processor/attempts.service.ts'
import type { ProcessorEvent } from '../processor/events.rule.ts'
import { findCycleByInvoice, lockCycle } from './billing.store.ts'

export type InvoiceFailed = Extract<ProcessorEvent, { kind: 'invoice_failed' }>

/**
 * Applies a verified report that an invoice was rejected or has expired: the cycle stays closed and is flagged, and a person may request
 * the invoice again. A repeated report changes nothing.
 */
export async function applyInvoiceFailure(
  platform: Platform,
  tx: Tx,
  event: InvoiceFailed,
): Promise<EventOutcome> {
  const found = await findCycleByInvoice(tx, event.invoice_id)
  const cycle = found && (await lockCycle(tx, found.id))
  if (!cycle) {
    return (await wasRefused(platform.keys, tx, 'invoice', event.invoice_id))
      ? { kind: 'ignored', reason: `invoice ${event.invoice_id} was refused when it was requested` }
      : { kind: 'retry', reason: `no billing cycle has invoice ${event.invoice_id} yet` }
  }
  const about = { subjectType: 'billing_cycle', subjectId: cycle.id } as const
  const evidence = {
    invoice_id: event.invoice_id,
    event: event.type,
    reason: event.reason,
    amount: formatMoney(cycle.amount_due),
    our_state: cycle.state,
  }
  if (cycle.state === 'charged') {
    const summary =
      'The processor reports as failed an invoice that it had reported as paid. Nothing was changed here.'
    await raiseFlag(platform, tx, { kind: 'payment_reversed', ...about, summary, evidence })
    return { kind: 'set_aside', reason: 'contradiction', flagged: true }
  }
  const attemptId = await markFailed(platform, tx, 'invoice', event.invoice_id)
  if (attemptId === null) {
    return { kind: 'ignored', reason: `invoice ${event.invoice_id} has already failed` }
  }
  await raiseFlag(platform, tx, {
    kind: 'invoice_failed',
    ...about,
    summary: `The request for this cycle's payment failed (${event.reason}). Ask the merchant, then run "affiliate billing reissue ${cycle.id}".`,
    evidence,
  })
  return { kind: 'done', result: { failed_attempt_id: attemptId } }
}
