import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { closeFlag, raiseFlag } from '../flags/flags.service.ts'
import type { EventOutcome } from '../inbox/inbox.service.ts'
import { cycleCharged } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { subscriptionsOf } from '../notifications/channels/webhooks/endpoints.service.ts'
import { type NewEvent, publishEvents } from '../notifications/outbox.service.ts'
import { afterCommit, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import { isCallWaiting, markFailed, subjectOf, wasRefused } from '../processor/attempts.service.ts'
import type { ProcessorEvent } from '../processor/events.rule.ts'
import { applyOutcome } from '../processor/outcome-event.service.ts'
import {
  type CycleRow,
  findCycleByInvoice,
  lockCycle,
  moveCycle,
  releaseShares,
  sharesOf,
} from './billing.store.ts'
import { wireCycle } from './billing-wire.ts'

type PaymentConfirmed = Extract<ProcessorEvent, { kind: 'billing_payment_confirmed' }>
type InvoiceFailed = Extract<ProcessorEvent, { kind: 'invoice_failed' }>

/** The cycle of an invoice, locked. */
async function lockCycleOf(tx: Tx, invoiceId: string): Promise<CycleRow | undefined> {
  const found = await findCycleByInvoice(tx, invoiceId)
  return found && lockCycle(tx, found.id)
}

/**
 * Applies a verified payment confirmation: the cycle becomes charged and its creators' shares are released, or a flag is raised and
 * nothing changes. A repeated confirmation changes nothing; another reference for a charged cycle is a second payment.
 */
export async function applyPaymentConfirmation(
  platform: Platform,
  tx: Tx,
  event: PaymentConfirmed,
): Promise<EventOutcome> {
  const { invoice_id, payment_reference, amount, currency } = event
  const cycle = await lockCycleOf(tx, invoice_id)
  if (!cycle) return { kind: 'retry', reason: `no billing cycle has invoice ${invoice_id} yet` }
  const { id, state, amount_due, processor_payment_reference: charged_reference } = cycle
  // A second invoice is on its way: charged now, the cycle could be paid twice.
  if (state === 'closed' && (await isCallWaiting(tx, 'invoice', id))) {
    return { kind: 'retry', reason: `billing cycle ${id} is being invoiced again` }
  }
  const settled = charged_reference === payment_reference ? 'same' : 'other'
  return applyOutcome(platform, tx, {
    kind: 'invoice',
    subjectId: id,
    state,
    amount: amount_due,
    event,
    standing: state === 'open' ? 'early' : state === 'closed' ? 'open' : settled,
    otherOutcome: 'second_reference',
    evidence: {
      invoice_id,
      payment_reference,
      amount: formatMoney(amount),
      currency,
      amount_due: formatMoney(amount_due),
      charged_reference,
    },
    async settle() {
      await charge(platform, tx, cycle, payment_reference)
      return { billing_cycle_id: id, state: 'charged' }
    },
  })
}

async function charge(platform: Platform, tx: Tx, cycle: CycleRow, paymentReference: string): Promise<void> {
  const now = platform.clock.now()
  const change = { state: 'charged', processor_payment_reference: paymentReference, charged_at: now } as const
  const charged = await moveCycle(tx, cycle.id, 'closed', change)
  if (!charged) throw new Error(`cycle ${cycle.id} is no longer closed`)
  const failure = { kind: 'invoice_failed', ...subjectOf('invoice', cycle.id) } as const
  await closeFlag(platform, tx, failure, 'The cycle is paid.')
  const shares = await sharesOf(tx, cycle.id)
  await releaseShares(tx, cycle.id, now)
  const entry = cycleCharged({
    cycleId: cycle.id,
    merchantId: cycle.merchant_id,
    amountDue: cycle.amount_due,
    shares: shares.map((share) => ({ creatorId: share.creator_id, commission: share.commission })),
  })
  await writeEntries(platform, tx, [entry], now)
  const creatorIds = shares.map((share) => share.creator_id)
  // A cycle can have very many creators: only those with an endpoint for it are notified of their release.
  const subscribed = await subscriptionsOf(tx, creatorIds)
  const released = shares.filter(({ creator_id }) => subscribed.get(creator_id)?.has('balance.released'))
  const { id: subjectId, merchant_id: accountId } = cycle
  await publishEvents(platform, tx, [
    { type: 'billing_cycle.charged', accountId, subjectId, data: wireCycle(platform, charged) },
    ...released.map(({ creator_id, commission }): NewEvent => {
      const data = { billing_cycle_id: subjectId, amount: formatMoney(commission), currency: CURRENCY }
      return { type: 'balance.released', accountId: creator_id, subjectId, data }
    }),
  ])
  afterCommit(tx, () => platform.topics.send(userTopic(accountId)))
}

/**
 * Applies a verified report that an invoice was rejected or has expired: the cycle stays closed and is flagged, and a person may request
 * the invoice again. A repeated report changes nothing.
 */
export async function applyInvoiceFailure(
  platform: Platform,
  tx: Tx,
  event: InvoiceFailed,
): Promise<EventOutcome> {
  const cycle = await lockCycleOf(tx, event.invoice_id)
  if (!cycle) {
    return (await wasRefused(platform.keys, tx, 'invoice', event.invoice_id))
      ? { kind: 'ignored', reason: `invoice ${event.invoice_id} was refused when it was requested` }
      : { kind: 'retry', reason: `no billing cycle has invoice ${event.invoice_id} yet` }
  }
  const about = subjectOf('invoice', cycle.id)
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
    return { kind: 'set_aside', reason: 'contradiction', code: 'flagged' }
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
