import { cycleOfInvoice } from '../billing/invoices.service.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import type { EventOutcome } from '../inbox/inbox.service.ts'
import { payoutByProcessorId } from '../payouts/payouts.service.ts'
import type { Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { ProcessorEvent } from '../processor/events.rule.ts'

type Reversal = Extract<ProcessorEvent, { kind: 'payment_reversed' }>

/** Money that came back, whole or in part, after it was paid: it moves nothing here and waits for a person. */
export async function applyReversal(platform: Platform, tx: Tx, event: Reversal): Promise<EventOutcome> {
  const id = event.processor_id
  const cycle = await cycleOfInvoice(tx, id)
  const payout = cycle ? undefined : await payoutByProcessorId(tx, id)
  const found = cycle ?? payout
  if (!found) return { kind: 'retry', reason: `no invoice or payout has the processor's id ${id} yet` }
  const what = cycle ? "a billing cycle's invoice" : 'a payout'
  await raiseFlag(platform, tx, {
    kind: 'payment_reversed',
    subjectType: cycle ? 'billing_cycle' : 'payout',
    subjectId: found.id,
    summary: `The processor reports that the payment of ${what} came back (${event.type}). Nothing was changed here.`,
    evidence: { event: event.type, processor_id: id, our_state: found.state },
  })
  return { kind: 'set_aside', reason: 'payment_reversed', flagged: true }
}
