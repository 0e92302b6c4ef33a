import { formatMoney } from '../../shared/money.ts'
import { moveShares } from '../billing/creator-shares.service.ts'
import type { EventOutcome } from '../inbox/inbox.service.ts'
import { payoutConfirmed, payoutFailed } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { afterCommit, type Tx } from '../platform/database/database.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import { wasRefused } from '../processor/attempts.service.ts'
import type { ProcessorEvent } from '../processor/events.rule.ts'
import { applyOutcome } from '../processor/outcome-event.service.ts'
import { wirePayout } from './payout-wire.ts'
import { findPayoutByProcessorId, linesOf, lockPayout, movePayout, type PayoutRow } from './payouts.store.ts'

type PayoutEvent = Extract<ProcessorEvent, { kind: 'payout_confirmed' | 'payout_failed' }>

/** The processor accepted the payout: pending → submitted. */
export async function recordSubmitted(
  platform: Platform,
  tx: Tx,
  payoutId: string,
  processorPayoutId: string,
): Promise<void> {
  const moved = await movePayout(tx, payoutId, 'pending', {
    state: 'submitted',
    processor_payout_id: processorPayoutId,
    submitted_at: platform.clock.now(),
  })
  if (!moved) throw new Error(`payout ${payoutId} is not pending`)
}

/**
 * Applies a verified payout event: submitted → paid or failed, or a flag and no change. A failed payout's amount goes back into
 * the creator's released balance. A repeated event changes nothing.
 */
export async function applyPayoutEvent(
  platform: Platform,
  tx: Tx,
  event: PayoutEvent,
): Promise<EventOutcome> {
  const id = event.reference ?? (await findPayoutByProcessorId(tx, event.payout_id))?.id
  const payout = id !== undefined && isId(id) ? await lockPayout(tx, id) : undefined
  if (!payout) {
    if (event.kind === 'payout_failed' && (await wasRefused(platform.keys, tx, 'payout', event.payout_id))) {
      return { kind: 'ignored', reason: `payout ${event.payout_id} was refused when it was requested` }
    }
    return { kind: 'retry', reason: `no payout has reference ${event.reference ?? event.payout_id} yet` }
  }
  const { state, processor_payout_id } = payout
  const outcome = event.kind === 'payout_confirmed' ? 'paid' : 'failed'
  const isOther = processor_payout_id !== event.payout_id
  const settled = state === outcome ? 'same' : 'other'
  return applyOutcome(platform, tx, {
    kind: 'payout',
    subjectId: payout.id,
    state,
    amount: payout.amount,
    event,
    standing: state === 'pending' ? 'early' : isOther ? 'other' : state === 'submitted' ? 'open' : settled,
    otherOutcome: isOther ? 'other_payout_id' : 'contradiction',
    evidence: {
      event: event.kind,
      payout_id: event.payout_id,
      amount: formatMoney(event.amount),
      currency: event.currency,
      our_state: state,
      our_amount: formatMoney(payout.amount),
      our_processor_payout_id: processor_payout_id,
    },
    async settle() {
      await settlePayout(platform, tx, payout, event)
      return { payout_id: payout.id, state: outcome }
    },
  })
}

async function settlePayout(platform: Platform, tx: Tx, payout: PayoutRow, event: PayoutEvent) {
  const now = platform.clock.now()
  const amounts = { payoutId: payout.id, creatorId: payout.creator_id, amount: payout.amount }
  const settled =
    event.kind === 'payout_confirmed'
      ? ({ state: 'paid', settled_at: now } as const)
      : ({ state: 'failed', settled_at: now, failure_reason: event.reason } as const)
  const moved = await movePayout(tx, payout.id, 'submitted', settled)
  if (!moved) throw new Error(`payout ${payout.id} is no longer submitted`)
  if (event.kind === 'payout_failed')
    await moveShares(tx, payout.creator_id, await linesOf(tx, payout.id), 'freed')
  const entry = event.kind === 'payout_confirmed' ? payoutConfirmed(amounts) : payoutFailed(amounts)
  await writeEntries(platform, tx, [entry], now)
  const data = wirePayout({ ...payout, ...settled })
  const about = { accountId: payout.creator_id, subjectId: payout.id, data }
  await publishEvents(platform, tx, [{ type: `payout.${settled.state}`, ...about }])
  afterCommit(tx, () => platform.topics.send(userTopic(payout.creator_id)))
}
