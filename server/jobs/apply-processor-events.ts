import { cycleOfInvoice } from '../billing/invoices.service.ts'
import { applyInvoiceFailure, applyPaymentConfirmation } from '../billing/payment.service.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import { type ClaimedEvent, type EventOutcome, settle } from '../inbox/inbox.service.ts'
import { BODY_GONE, CONFLICTING, unmapped, unreadable } from '../inbox/set-aside.service.ts'
import { applyPayoutEvent } from '../payouts/payout-events.service.ts'
import { payoutByProcessorId } from '../payouts/payouts.service.ts'
import { LARGE_JSON, parseBoundedJson, UnreadableJson } from '../platform/bounded-json.ts'
import type { Tx } from '../platform/database/database.ts'
import { createLoopYield } from '../platform/loop-yield.ts'
import type { Platform } from '../platform/platform.ts'
import { MalformedEvent, type ProcessorEvent, readProcessorEvent } from '../processor/events.rule.ts'
import type { ProcessorEventRules } from '../processor/events.settings.ts'

/** Returns the function that applies the processor's signed events, each in its own transaction. */
export function processorEventApplier(rules: ProcessorEventRules) {
  return async (platform: Platform, events: readonly ClaimedEvent[]): Promise<void> => {
    const yieldLoop = createLoopYield()
    for (const event of events) {
      const isLarge = (event.text?.length ?? 0) > LARGE_JSON
      if (isLarge) await yieldLoop(true)
      const read = readEvent(event, rules)
      await yieldLoop(isLarge)
      await platform.database.transaction(async (tx) => {
        const outcome = 'event' in read ? await applyEvent(platform, tx, read.event) : read
        await settle(platform, tx, event, outcome)
      })
    }
  }
}

function readEvent(
  claimed: ClaimedEvent,
  rules: ProcessorEventRules,
): { event: ProcessorEvent } | EventOutcome {
  if (claimed.conflict_hash !== '') return CONFLICTING
  if (claimed.text === null) return BODY_GONE
  try {
    return { event: readProcessorEvent(parseBoundedJson(claimed.text), rules) }
  } catch (error) {
    if (!(error instanceof MalformedEvent || error instanceof UnreadableJson)) throw error
    return unreadable(error instanceof UnreadableJson ? error.reason : error.message)
  }
}

async function applyEvent(platform: Platform, tx: Tx, event: ProcessorEvent): Promise<EventOutcome> {
  switch (event.kind) {
    case 'billing_payment_confirmed':
      return applyPaymentConfirmation(platform, tx, event)
    case 'payout_confirmed':
    case 'payout_failed':
      return applyPayoutEvent(platform, tx, event)
    case 'invoice_failed':
      return applyInvoiceFailure(platform, tx, event)
    case 'payment_reversed':
      return applyReversal(platform, tx, event)
    case 'ignore':
      return { kind: 'ignored', reason: `nothing to do for type ${event.type}` }
    case 'unmapped':
      return unmapped(event.type)
  }
}

type Reversal = Extract<ProcessorEvent, { kind: 'payment_reversed' }>

/** Money that came back, whole or in part, after it was paid: it moves nothing here and waits for a person. */
async function applyReversal(platform: Platform, tx: Tx, event: Reversal): Promise<EventOutcome> {
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
  return { kind: 'set_aside', reason: 'payment_reversed', code: 'flagged' }
}
