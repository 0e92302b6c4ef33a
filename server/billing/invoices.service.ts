import { formatMoney } from '../../shared/money.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import {
  makeAttemptsDue,
  queueAttempts,
  type RecordFilter,
  recordsOf,
} from '../processor/attempts.service.ts'
import { type RetryableCall, type RetryRequest, retryCall } from '../processor/operator-retry.service.ts'
import type { Processor } from '../processor/processor.ts'
import type { OurRecord } from '../processor/records.rule.ts'
import { type PersonRow, peopleOf } from '../users/users.service.ts'
import {
  type CycleRow,
  findCycle,
  findCyclesToCompare,
  lockCycle,
  moveCycle,
  uninvoicedCycleIds,
} from './billing.store.ts'
import { wireCycle } from './billing-wire.ts'

/** Queues the processor calls that create these closed cycles' first invoices. */
export async function queueInvoices(platform: Platform, tx: Tx, cycles: readonly CycleRow[]): Promise<void> {
  const merchantIds = cycles.map(({ merchant_id }) => merchant_id)
  const people = await peopleOf(tx, merchantIds)
  const attempts = cycles.map(({ id: subjectId, merchant_id, amount_due: amount }) => {
    const request = requestFor(merchant_id, people.get(merchant_id))
    return { kind: 'invoice' as const, subjectId, amount, request }
  })
  await queueAttempts(platform, tx, attempts)
}

/** Has the merchant's waiting invoices requested now: the account that they are paid from is there. */
export async function makeInvoicesDue(platform: Platform, tx: Tx, merchantId: string): Promise<void> {
  await makeAttemptsDue(platform, tx, await uninvoicedCycleIds(tx, merchantId))
}

function requestFor(merchantId: string, person: PersonRow | undefined) {
  return { customer: { id: merchantId, email: person?.email ?? '', name: person?.display_name ?? '' } }
}

/** Records the processor's invoice for a closed cycle, and writes the mail to its merchant. */
export async function recordInvoice(
  platform: Platform,
  tx: Tx,
  cycleId: string,
  invoice: { id: string; hostedUrl: string | null },
): Promise<void> {
  const change = { processor_invoice_id: invoice.id, payment_url: invoice.hostedUrl }
  const cycle = await moveCycle(tx, cycleId, 'closed', change)
  if (!cycle) throw new Error(`cycle ${cycleId} is not closed`)
  await sendMail(platform, tx, {
    userId: cycle.merchant_id,
    kind: 'billing_cycle.closed',
    facts: {
      amount_due: formatMoney(cycle.amount_due),
      period_start: cycle.period_start,
      period_end: cycle.period_end,
      payment_url: invoice.hostedUrl,
      ...payableBy(platform, cycle),
    },
    about: cycleId,
  })
}

/** What the merchant needs to pay by bank transfer; `undefined` with processors that take the payment themselves. */
function payableBy(platform: Platform, cycle: CycleRow) {
  const { payment_instructions: instructions } = wireCycle(platform, cycle)
  const number = cycle.processor_invoice_id
  return instructions === null ? undefined : { transfer: { number, instructions } }
}

export { findCycleByInvoice as cycleOfInvoice } from './billing.store.ts'

/**
 * Requests the invoice of a closed cycle again after the processor has finally refused it or reported it as failed, with the merchant's present name and
 * e-mail; see `retryCall`.
 */
export function retryInvoice(
  platform: Platform,
  processor: Processor,
  { cycleId, ...by }: RetryRequest & { cycleId: string },
) {
  const call: RetryableCall<CycleRow> = {
    kind: 'invoice',
    action: 'billing.reissue',
    flagKinds: ['processor_refusal', 'invoice_failed'],
    flagNote: 'The invoice was requested again.',
    find: findCycle,
    lock: lockCycle,
    assertWaiting: (row) => assertClosed(cycleId, row),
    amount: (row) => row.amount_due,
    async request(db, { merchant_id }) {
      return requestFor(merchant_id, (await peopleOf(db, [merchant_id])).get(merchant_id))
    },
  }
  return retryCall(platform, processor, call, cycleId, by)
}

function assertClosed(id: string, cycle: CycleRow | undefined): asserts cycle is CycleRow {
  if (!cycle) throw new Refusal('not_found', `Billing cycle ${id} not found.`)
  if (cycle.state === 'open') {
    throw new Refusal('conflict', 'This cycle is open. It is invoiced when it closes.')
  }
  if (cycle.state === 'charged') throw new Refusal('conflict', 'This cycle is paid.')
}

/** Closed and charged cycles to compare with the processor's invoices, by id. */
export async function invoiceRecords(db: Queries, filter: RecordFilter, after: string, limit: number) {
  return recordsOf(db, 'invoice', (await findCyclesToCompare(db, filter, after, limit)).map(recordOf))
}

export async function invoiceRecord(db: Queries, cycleId: string): Promise<OurRecord | null> {
  const row = await findCycle(db, cycleId)
  if (!row || row.state === 'open') return null
  const [record = null] = await recordsOf(db, 'invoice', [recordOf(row)])
  return record
}

function recordOf({ id, amount_due: amount, state, processor_invoice_id: processorId }: CycleRow) {
  const standing = state === 'charged' ? ('paid' as const) : null
  return { id, amount, processorId, standing }
}
