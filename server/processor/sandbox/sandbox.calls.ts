import { createHash } from 'node:crypto'
import { v7 as uuid } from 'uuid'
import { z } from 'zod'
import { CURRENCY, formatMoney, type Paisa, parseMoney } from '../../../shared/money.ts'
import type { ObjectKind, SandboxEvent, SandboxObject, SandboxStore } from './sandbox.store.ts'
import type { SandboxSwitches } from './switches.ts'

const amount = z.string().transform((text, context): Paisa => {
  const paisa = parseMoney(text)
  if (paisa !== null && paisa > 0) return paisa
  context.addIssue({ code: 'custom', message: 'not an amount above zero' })
  return z.NEVER
})
const text = z.string().min(1).max(500)
const common = { reference: text, amount, currency: z.literal(CURRENCY) }

const CALL_SCHEMAS = {
  invoice: z.strictObject({ ...common, customer: z.strictObject({ id: text, email: text, name: text }) }),
  payout: z.strictObject({ ...common, destination: z.strictObject({ iban: text, account_title: text }) }),
}

type AcceptedCall =
  | { kind: 'created'; object: SandboxObject; eventId: string | null }
  | { kind: 'refused'; status: 409 | 422; detail: string }

const REFUSED: AcceptedCall = { kind: 'refused', status: 422, detail: 'refused by the sandbox' }

/**
 * One POST /invoices or /payouts, in one transaction: stores the object, its future event and the answer to its idempotency key. `eventId` is
 * null for a repeated call.
 */
export function acceptCall(
  store: SandboxStore,
  call: { kind: ObjectKind; key: string; body: unknown; now: number },
): AcceptedCall {
  const parsed = CALL_SCHEMAS[call.kind].safeParse(call.body)
  const hash = createHash('sha256')
    .update(JSON.stringify([call.kind, parsed.success ? parsed.data : call.body]))
    .digest('hex')
  return store.atomically(() => {
    const known = store.answers.get(call.key)
    if (known && known.request_hash !== hash) {
      return { kind: 'refused', status: 409, detail: 'this idempotency key was used with another body' }
    }
    if (known) {
      const object = store.objects.get(known.object_id ?? '')
      return object ? { kind: 'created', object, eventId: null } : REFUSED
    }
    if (!parsed.success) {
      const issue = parsed.error.issues[0]
      return { kind: 'refused', status: 422, detail: `${issue?.path.join('.') || 'body'}: ${issue?.message}` }
    }
    const isRefused = store.take('refuse_next')
    const made = isRefused ? null : create(store, { ...call, ...parsed.data })
    store.answers.put({ request_hash: hash, object_id: made?.object.id ?? null }, call.key)
    return made ? { kind: 'created', object: made.object, eventId: made.event.id } : REFUSED
  })
}

function create(
  store: SandboxStore,
  call: { kind: ObjectKind; reference: string; amount: Paisa; now: number },
): { object: SandboxObject; event: SandboxEvent } {
  const isInvoice = call.kind === 'invoice'
  const object: SandboxObject = {
    id: `${isInvoice ? 'inv' : 'po'}_${uuid()}`,
    kind: call.kind,
    reference: call.reference,
    amount: call.amount,
    currency: CURRENCY,
    status: isInvoice ? 'open' : 'processing',
    created_at: call.now,
  }
  const event = eventFor(object, store.switches(), !isInvoice && store.take('fail_next_payouts'))
  store.objects.put(object)
  store.events.put(event)
  return { object, event }
}

function eventFor(object: SandboxObject, switches: SandboxSwitches, fails: boolean): SandboxEvent {
  const confirmed = formatMoney(object.amount + switches.confirm_amount_delta)
  const { reference, currency } = object
  const data =
    object.kind === 'invoice'
      ? { invoice_id: object.id, payment_reference: `pay_${uuid()}`, amount: confirmed, currency }
      : { payout_id: object.id, reference, amount: fails ? formatMoney(object.amount) : confirmed, currency }
  const type =
    object.kind === 'invoice' ? 'billing.payment_confirmed' : fails ? 'payout.failed' : 'payout.confirmed'
  const due_at = object.created_at + (switches.events_before_answer ? 0 : switches.event_delay_ms)
  return {
    id: `evt_${uuid()}`,
    object_id: object.id,
    outcome: fails ? 'failed' : 'paid',
    body: JSON.stringify({ type, data: fails ? { ...data, reason: switches.failure_reason } : data }),
    ...{ due_at, settled: false, next_attempt_at: due_at, attempts: 0, copies_sent: 0, delivered_at: null },
  }
}
