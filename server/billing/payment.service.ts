import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { closeFlag, type FlagKind, raiseFlag } from '../flags/flags.service.ts'
import type { EventOutcome } from '../inbox/inbox.service.ts'
import { cycleCharged } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { subscriptionsOf } from '../notifications/channels/webhooks/endpoints.service.ts'
import { type NewEvent, publishEvents } from '../notifications/outbox.service.ts'
import { afterCommit, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import { isCallWaiting } from '../processor/attempts.service.ts'
import type { ProcessorEvent } from '../processor/events.rule.ts'
import {
  type CycleRow,
  findCycleByInvoice,
  lockCycle,
  moveCycle,
  releaseShares,
  type ShareRow,
  sharesOf,
} from './billing.store.ts'
import { wireCycle } from './billing-wire.ts'
import { decidePaymentConfirmation } from './payment.rule.ts'

export type PaymentConfirmed = Extract<ProcessorEvent, { kind: 'billing_payment_confirmed' }>

/**
 * Applies a verified payment confirmation: the cycle becomes charged and its creators' shares are released, or a flag is raised and
 * nothing changes. A repeated confirmation changes nothing.
 */
export async function applyPaymentConfirmation(
  platform: Platform,
  tx: Tx,
  event: PaymentConfirmed,
): Promise<EventOutcome> {
  const found = await findCycleByInvoice(tx, event.invoice_id)
  const cycle = found && (await lockCycle(tx, found.id))
  if (!cycle) return { kind: 'retry', reason: `no billing cycle has invoice ${event.invoice_id} yet` }
  // A second invoice is on its way: charged now, the cycle could be paid twice.
  if (cycle.state === 'closed' && (await isCallWaiting(tx, 'invoice', cycle.id))) {
    return { kind: 'retry', reason: `billing cycle ${cycle.id} is being invoiced again` }
  }
  const decision = decidePaymentConfirmation({
    state: cycle.state,
    amountDue: cycle.amount_due,
    chargedReference: cycle.processor_payment_reference,
    event: { amount: event.amount, currency: event.currency, paymentReference: event.payment_reference },
  })
  switch (decision.kind) {
    case 'retry_later':
      return { kind: 'retry', reason: `billing cycle ${cycle.id} is not closed yet` }
    case 'already':
      return { kind: 'ignored', reason: `billing cycle ${cycle.id} is already charged` }
    case 'flag':
      await flagPayment(platform, tx, cycle, event, decision.why)
      return { kind: 'set_aside', reason: decision.why, flagged: true }
    case 'charge':
      await charge(platform, tx, cycle, event.payment_reference)
      return { kind: 'done', result: { billing_cycle_id: cycle.id, state: 'charged' } }
  }
}

async function charge(platform: Platform, tx: Tx, cycle: CycleRow, paymentReference: string): Promise<void> {
  const now = platform.clock.now()
  const charged = {
    state: 'charged',
    processor_payment_reference: paymentReference,
    charged_at: now,
  } as const
  const moved = await moveCycle(tx, cycle.id, 'closed', charged)
  if (!moved) throw new Error(`cycle ${cycle.id} is no longer closed`)
  const failure = { kind: 'invoice_failed', subjectType: 'billing_cycle', subjectId: cycle.id } as const
  await closeFlag(platform, tx, failure, 'The cycle is paid.')
  const shares = await sharesOf(tx, cycle.id)
  await releaseShares(tx, cycle.id, now)
  await writeEntries(
    platform,
    tx,
    [
      cycleCharged({
        cycleId: cycle.id,
        merchantId: cycle.merchant_id,
        amountDue: cycle.amount_due,
        shares: shares.map((share) => ({ creatorId: share.creator_id, commission: share.commission })),
      }),
    ],
    now,
  )
  await publishCharge(platform, tx, { ...cycle, ...charged }, shares)
  afterCommit(tx, () => platform.topics.send(userTopic(cycle.merchant_id)))
}

/** A cycle can have very many creators: only those with an endpoint for it are notified of their release. */
async function publishCharge(
  platform: Platform,
  tx: Tx,
  cycle: CycleRow,
  shares: readonly ShareRow[],
): Promise<void> {
  const subscribed = await subscriptionsOf(
    tx,
    shares.map((share) => share.creator_id),
  )
  const released = shares.filter(({ creator_id }) => subscribed.get(creator_id)?.has('balance.released'))
  const events: NewEvent[] = [
    {
      type: 'billing_cycle.charged',
      accountId: cycle.merchant_id,
      subjectId: cycle.id,
      data: wireCycle(cycle),
    },
    ...released.map(({ creator_id, commission }): NewEvent => {
      const data = { billing_cycle_id: cycle.id, amount: formatMoney(commission), currency: CURRENCY }
      return { type: 'balance.released', accountId: creator_id, subjectId: cycle.id, data }
    }),
  ]
  await publishEvents(platform, tx, events)
}

const FLAG_OF = {
  amount_mismatch: 'payment_amount_mismatch',
  currency_mismatch: 'payment_amount_mismatch',
  second_reference: 'second_payment_reference',
} as const satisfies Record<string, FlagKind>

async function flagPayment(
  platform: Platform,
  tx: Tx,
  cycle: CycleRow,
  event: PaymentConfirmed,
  why: keyof typeof FLAG_OF,
): Promise<void> {
  await raiseFlag(platform, tx, {
    kind: FLAG_OF[why],
    subjectType: 'billing_cycle',
    subjectId: cycle.id,
    summary: `The processor's payment confirmation does not match our billing cycle: ${why.replaceAll('_', ' ')}.`,
    evidence: {
      invoice_id: event.invoice_id,
      payment_reference: event.payment_reference,
      amount: formatMoney(event.amount),
      currency: event.currency,
      amount_due: formatMoney(cycle.amount_due),
      charged_reference: cycle.processor_payment_reference,
    },
  })
}
