import { formatMoney } from '../../shared/money.ts'
import { freeShares } from '../billing/creator-shares.service.ts'
import { type FlagKind, raiseFlag } from '../flags/flags.service.ts'
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
import { decidePayoutEvent } from './payout-event.rule.ts'
import { wirePayout } from './payout-wire.ts'
import { findPayoutByProcessorId, linesOf, lockPayout, movePayout, type PayoutRow } from './payouts.store.ts'

export type PayoutEvent = Extract<ProcessorEvent, { kind: 'payout_confirmed' | 'payout_failed' }>

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
  const decision = decidePayoutEvent({
    state: payout.state,
    amount: payout.amount,
    event: {
      kind: event.kind === 'payout_confirmed' ? 'confirmed' : 'failed',
      amount: event.amount,
      currency: event.currency,
    },
  })
  if (decision.kind === 'retry_later') {
    return { kind: 'retry', reason: `payout ${payout.id} is not submitted yet` }
  }
  if (payout.processor_payout_id !== event.payout_id) {
    await flagEvent(platform, tx, payout, event, 'other_payout_id')
    return { kind: 'set_aside', reason: 'other_payout_id', flagged: true }
  }
  switch (decision.kind) {
    case 'already':
      return { kind: 'ignored', reason: `payout ${payout.id} is already ${payout.state}` }
    case 'flag':
      await flagEvent(platform, tx, payout, event, decision.why)
      return { kind: 'set_aside', reason: decision.why, flagged: true }
    case 'settle':
      await settlePayout(platform, tx, payout, event)
      return { kind: 'done', result: { payout_id: payout.id, state: decision.state } }
  }
}

async function settlePayout(
  platform: Platform,
  tx: Tx,
  payout: PayoutRow,
  event: PayoutEvent,
): Promise<void> {
  const now = platform.clock.now()
  const amounts = { payoutId: payout.id, creatorId: payout.creator_id, amount: payout.amount }
  const settled =
    event.kind === 'payout_confirmed'
      ? ({ state: 'paid', settled_at: now } as const)
      : ({ state: 'failed', settled_at: now, failure_reason: event.reason } as const)
  const moved = await movePayout(tx, payout.id, 'submitted', settled)
  if (!moved) throw new Error(`payout ${payout.id} is no longer submitted`)
  if (event.kind === 'payout_failed') await freeShares(tx, payout.creator_id, await linesOf(tx, payout.id))
  await writeEntries(
    platform,
    tx,
    [event.kind === 'payout_confirmed' ? payoutConfirmed(amounts) : payoutFailed(amounts)],
    now,
  )
  await publishEvents(platform, tx, [
    {
      type: `payout.${settled.state}`,
      accountId: payout.creator_id,
      subjectId: payout.id,
      data: wirePayout({ ...payout, ...settled }),
    },
  ])
  afterCommit(tx, () => platform.topics.send(userTopic(payout.creator_id)))
}

const FLAG_OF = {
  contradiction: 'payout_contradiction',
  other_payout_id: 'payout_contradiction',
  amount_mismatch: 'payout_amount_mismatch',
  currency_mismatch: 'payout_amount_mismatch',
} as const satisfies Record<string, FlagKind>

async function flagEvent(
  platform: Platform,
  tx: Tx,
  payout: PayoutRow,
  event: PayoutEvent,
  why: keyof typeof FLAG_OF,
): Promise<void> {
  await raiseFlag(platform, tx, {
    kind: FLAG_OF[why],
    subjectType: 'payout',
    subjectId: payout.id,
    summary: `The processor's event does not match our payout: ${why.replaceAll('_', ' ')}.`,
    evidence: {
      event: event.kind,
      payout_id: event.payout_id,
      amount: formatMoney(event.amount),
      currency: event.currency,
      our_state: payout.state,
      our_amount: formatMoney(payout.amount),
      our_processor_payout_id: payout.processor_payout_id,
    },
  })
}
