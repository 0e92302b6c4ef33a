import { type Paisa, parseMoney } from '../../shared/money.ts'
import type { EventRule, FieldPredicate, ProcessorEventRules } from './events.settings.ts'

interface PaymentFacts {
  type: string
  amount: Paisa
  currency: string
}

interface PayoutFacts extends PaymentFacts {
  payout_id: string
  /** Our payout's id, as sent with the call; `null` where the processor's events do not carry it. */
  reference: string | null
}

export type ProcessorEvent =
  | (PaymentFacts & { kind: 'billing_payment_confirmed'; invoice_id: string; payment_reference: string })
  | (PayoutFacts & { kind: 'payout_confirmed' })
  | (PayoutFacts & { kind: 'payout_failed'; reason: string })
  | { kind: 'invoice_failed'; type: string; invoice_id: string; reason: string }
  /** Of an invoice or a payout. */
  | { kind: 'payment_reversed'; type: string; processor_id: string }
  | { kind: 'ignore'; type: string }
  /** No rule matches its type and fields. */
  | { kind: 'unmapped'; type: string }

/** A signed event that cannot be read. Its message is shown to operators. */
export class MalformedEvent extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'MalformedEvent'
  }
}

const MAX_ID_LENGTH = 200
const MAX_REASON_LENGTH = 500
// PostgreSQL refuses a row with a NUL, on every retry.
const CONTROL_CHARACTERS = /\p{Cc}/u

/**
 * The meaning of a processor's event by the configured rules. `body` is the parsed JSON. The amount is in paisa and positive; the caller
 * compares it with the invoice or payout. Throws `MalformedEvent` when a required fact is missing or unreadable.
 */
export function readProcessorEvent(body: unknown, rules: ProcessorEventRules): ProcessorEvent {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new MalformedEvent('the body is not a JSON object')
  }
  const type = readText(body, rules.type_field, 'event type')
  const rule = rules.rules.find((candidate) => fits(candidate, type, body))
  if (rule === undefined) return { kind: 'unmapped', type }
  if (rule.meaning === 'ignore') return { kind: 'ignore', type }
  const { meaning: kind, fields } = rule
  const text = (field: 'invoice_id' | 'payment_reference' | 'payout_id', what = field.replace('_', ' ')) =>
    readText(body, fields[field], what)
  if (kind === 'payment_reversed') return { kind, type, processor_id: text('invoice_id', 'id') }
  const reason = readReason(body, fields.reason)
  if (kind === 'invoice_failed') return { kind, type, invoice_id: text('invoice_id'), reason }
  const money = { amount: readAmount(body, rule), currency: readCurrency(body, rule) }
  if (kind === 'billing_payment_confirmed') {
    const ids = { invoice_id: text('invoice_id'), payment_reference: text('payment_reference') }
    return { kind, type, ...ids, ...money }
  }
  const payout_id = text('payout_id')
  const reference = fields.reference === null ? null : readText(body, fields.reference, 'reference')
  const payout = { type, payout_id, reference, ...money }
  return kind === 'payout_confirmed' ? { kind, ...payout } : { kind, ...payout, reason }
}

function fits(rule: EventRule, type: string, body: object): boolean {
  return rule.types.includes(type) && rule.when.every((predicate) => holds(predicate, body))
}

function holds(predicate: FieldPredicate, body: object): boolean {
  const value = valueAt(body, predicate.field)
  if ('equals' in predicate) return value === predicate.equals
  if ('not_equals' in predicate) return value !== predicate.not_equals
  if ('one_of' in predicate) return predicate.one_of.some((wanted) => wanted === value)
  return (value !== undefined) === predicate.present
}

function valueAt(body: object, path: string): unknown {
  let value: unknown = body
  for (const key of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = Reflect.get(value, key)
  }
  return value
}

function readText(body: object, path: string, what: string): string {
  const value = valueAt(body, path)
  if (value === undefined || value === null) throw new MalformedEvent(`${what} is missing (${path})`)
  const text = Number.isSafeInteger(value) ? String(value) : value
  if (
    typeof text !== 'string' ||
    text === '' ||
    text.length > MAX_ID_LENGTH ||
    CONTROL_CHARACTERS.test(text)
  ) {
    throw new MalformedEvent(`${what} is not plain text (${path})`)
  }
  return text
}

/** An unreadable reason does not make the event malformed: the payout has failed with or without one. */
function readReason(body: object, path: string): string {
  const value = valueAt(body, path)
  const text =
    typeof value === 'string'
      ? value
          .toWellFormed()
          .replace(/\p{Cc}+/gu, ' ')
          .trim()
      : ''
  return text === '' ? 'no reason given' : text.slice(0, MAX_REASON_LENGTH)
}

function readAmount(body: object, rule: EventRule): Paisa {
  const path = rule.fields.amount
  const value = valueAt(body, path)
  if (value === undefined || value === null) throw new MalformedEvent(`amount is missing (${path})`)
  const amount = rule.amount_unit === 'rupees' ? rupeesToPaisa(value) : wholePaisa(value)
  if (amount === null) {
    throw new MalformedEvent(`amount is not an exact number of ${rule.amount_unit} (${path})`)
  }
  if (amount <= 0) throw new MalformedEvent(`amount is not above zero (${path})`)
  return amount
}

function rupeesToPaisa(value: unknown): Paisa | null {
  // A JSON number prints as its shortest decimal, so 1250.5 is exact and 0.125 is refused.
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' ? parseMoney(text) : null
}

function wholePaisa(value: unknown): Paisa | null {
  const amount = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value
  return typeof amount === 'number' && Number.isSafeInteger(amount) ? amount : null
}

/** As it was sent: a spelling other than `PKR` is another currency, and its event is flagged. */
function readCurrency(body: object, rule: EventRule): string {
  const path = rule.fields.currency
  const value = valueAt(body, path) ?? rule.assumed_currency
  if (value === null) throw new MalformedEvent(`currency is missing (${path})`)
  const isCode = typeof value === 'string' && /^\s{0,9}[A-Za-z]{3}\s{0,9}$/.test(value)
  if (!isCode) throw new MalformedEvent(`currency is not a three-letter code (${path})`)
  return value
}
