import { CURRENCY, formatMoney, type Paisa } from '../../../shared/money.ts'
import { withoutInvisible, withPlainDigits } from '../../../shared/pasted-text.ts'
import type { AttemptKind } from '../attempt.entity.ts'

export const TRANSFER_STATES = ['open', 'paid', 'failed'] as const
export type TransferState = (typeof TRANSFER_STATES)[number]

/** What is decided and sent about a transfer. */
export interface TransferFacts {
  kind: AttemptKind
  subject_id: string
  number: string
  amount: Paisa
  state: TransferState
  bank_reference: string | null
  reason: string | null
}

/** What a person says about a transfer. */
export interface ConfirmationFacts {
  outcome: 'paid' | 'failed'
  /** Paisa; `null` where the person names none: a payout is paid as it was ordered. */
  amount: Paisa | null
  /** The bank's reference, as `readReference` answers it; `null` for a failure. */
  reference: string | null
  /** Of a failure. */
  reason: string | null
}

/**
 * `record`: it counts now. `repeat`: the same words were said before. `settled`: something else was said before. `used_reference`: the bank's
 * reference belongs to another transfer.
 */
export type ConfirmationVerdict =
  | 'record'
  | 'repeat'
  | 'unknown'
  | 'other_amount'
  | 'settled'
  | 'used_reference'

/** Decides on a confirmation. `holder` is the number of the transfer that has the given reference, `null` where none has. */
export function decideConfirmation(
  transfer: TransferFacts | null,
  holder: string | null,
  { outcome, amount, reference, reason }: ConfirmationFacts,
): ConfirmationVerdict {
  if (transfer === null) return 'unknown'
  if (amount !== null && amount !== transfer.amount) return 'other_amount'
  if (transfer.state !== 'open') {
    const isSame =
      transfer.state === outcome && transfer.bank_reference === reference && transfer.reason === reason
    return isSame ? 'repeat' : 'settled'
  }
  return holder === null ? 'record' : 'used_reference'
}

/** The event that the processor sends about a settled transfer: the same bytes each time. */
export function eventOf({ kind, subject_id, number, amount, state, bank_reference, reason }: TransferFacts) {
  const money = { amount: formatMoney(amount), currency: CURRENCY }
  if (kind === 'invoice') {
    const data = { invoice_id: number, payment_reference: bank_reference, ...money }
    return JSON.stringify({ type: 'billing.payment_confirmed', data })
  }
  const data = { payout_id: number, reference: subject_id, ...money }
  return state === 'paid'
    ? JSON.stringify({ type: 'payout.confirmed', data })
    : JSON.stringify({ type: 'payout.failed', data: { ...data, reason } })
}

const REFERENCE = /^[A-Z0-9][A-Z0-9 ./:_-]{0,63}$/
/** What a spreadsheet program makes of a long number: the digits after the fifteenth are gone. */
const ROUNDED = /^\d(\.\d+)?E\+?\d+$/

/**
 * A bank's reference as it is compared: upper case, plain digits, single spaces; `null` for what is none, or was rounded by a spreadsheet
 * program.
 */
export function readReference(pasted: string): string | null {
  const text = withPlainDigits(withoutInvisible(pasted))
    .trim()
    .replace(/^'/, '')
    .replace(/\s+/g, ' ')
    .toUpperCase()
  return REFERENCE.test(text) && !ROUNDED.test(text) ? text : null
}
