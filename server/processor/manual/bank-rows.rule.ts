import { type Paisa, parseMoney } from '../../../shared/money.ts'
import { withoutInvisible, withPlainDigits } from '../../../shared/pasted-text.ts'
import { readReference } from './confirmation.rule.ts'

/** The columns of the bank's result file. */
export const RESULT_COLUMNS = {
  required: ['reference', 'amount', 'status'],
  optional: ['bank_reference', 'reason'],
} as const

/** The columns of a bank statement. The amount stands in one column, or in two. */
export const STATEMENT_COLUMNS = {
  required: ['reference'],
  optional: ['amount', 'credit', 'debit', 'description'],
} as const

type Cell = (column: string) => string

/** Finds each one, also where a word such as "payment" seems to begin another. */
const NUMBERS = /(?=((?:INV|PAY)[A-Z2-7]{12}))/g
const NUMBER = /^(?:INV|PAY)[A-Z2-7]{12}$/
const GROUPED = /^\d{1,3}(,\d{2,3})*,\d{3}(\.\d{1,2})?$/

/** An amount as banks write it (`1,25,000.00`, `Rs 1250`, `500.00 DR`) and its direction, where it says one; `null` for what is none. */
export function readBankAmount(text: string): { amount: Paisa; isOut: boolean | null } | null {
  const match = /^(?:PKR|RS\.?)?\s*([+-]?)\s*(?:PKR|RS\.?)?\s*([\d,.]+)\s*(CR|DR)?\.?$/i.exec(
    withPlainDigits(withoutInvisible(text)).trim(),
  )
  if (!match) return null
  const [, sign = '', digits = '', side] = match
  const amount = parseMoney(GROUPED.test(digits) ? digits.replaceAll(',', '') : digits)
  if (amount === null || amount === 0) return null
  const isOut = side === undefined ? (sign === '' ? null : sign === '-') : side.toUpperCase() === 'DR'
  return { amount, isOut }
}

/** What may be the number of a transfer in what a payer or a bank wrote. */
function numbersIn(text: string): string[] {
  return [...new Set(Array.from(compactOf(text).matchAll(NUMBERS), ([, number = '']) => number))]
}

/** A transfer's number as people paste it, in its own form; `null` for anything else. */
export function readNumber(text: string): string | null {
  const compact = compactOf(text)
  return NUMBER.test(compact) ? compact : null
}

function compactOf(text: string): string {
  return withoutInvisible(text)
    .toUpperCase()
    .replace(/[\s'-]/g, '')
}

const PAID = [
  'paid',
  'success',
  'successful',
  'succeeded',
  'completed',
  'settled',
  'processed',
  'executed',
  'credited',
]
const FAILED = [
  'failed',
  'failure',
  'unsuccessful',
  'rejected',
  'returned',
  'declined',
  'cancelled',
  'canceled',
  'reversed',
]
const UNDECIDED = ['pending', 'processing', 'in process', 'in progress', 'submitted', 'queued', 'scheduled']

/** What one row of a result file says about a payout. */
export type ResultRow =
  | { kind: 'paid'; number: string; amount: Paisa; reference: string }
  | { kind: 'failed'; number: string; amount: Paisa; reason: string }
  | { kind: 'undecided'; number: string }
  | { kind: 'unreadable'; why: string }

const LONGEST_REASON = 500

/** Reads a row of a result file. Without a `bank_reference` the payout's own number stands for it. */
export function readResultRow(cell: Cell): ResultRow {
  const number = readNumber(cell('reference'))
  if (number === null) return unreadable('its reference is not the number of a payout')
  const status = cell('status').toLowerCase()
  if (UNDECIDED.includes(status)) return { kind: 'undecided', number }
  const amount = readBankAmount(cell('amount'))?.amount
  if (amount === undefined) return unreadable('its amount cannot be read')
  if (FAILED.includes(status)) {
    const reason = withoutInvisible(cell('reason'))
      .replace(/\p{Cc}+/gu, ' ')
      .slice(0, LONGEST_REASON)
      .trim()
    return { kind: 'failed', number, amount, reason: reason || 'returned by the bank' }
  }
  if (!PAID.includes(status)) return unreadable('its status is not known')
  const given = cell('bank_reference')
  const reference = given === '' ? number : readReference(given)
  return reference === null
    ? unreadable("the bank's reference cannot be read: a spreadsheet program may have rounded it")
    : { kind: 'paid', number, amount, reference }
}

function unreadable(why: string): ResultRow {
  return { kind: 'unreadable', why }
}

/** What one row of a statement says. */
export interface StatementRow {
  numbers: string[]
  /** The bank's reference; `null` where there is none. */
  reference: string | null
  /** `null` where it cannot be read. */
  amount: Paisa | null
  /** Whether the money left the account; `null` where the row does not say. */
  isOut: boolean | null
}

export function readStatementRow(cell: Cell): StatementRow {
  const numbers = numbersIn(`${cell('reference')} ${cell('description')}`)
  const reference = readReference(cell('reference'))
  const debit = readBankAmount(cell('debit'))
  const credit = readBankAmount(cell('credit'))
  const found = debit ?? credit ?? readBankAmount(cell('amount'))
  const isOut = debit ? true : credit ? false : (found?.isOut ?? null)
  return { numbers, reference, amount: found?.amount ?? null, isOut }
}

/** How the statement differs from what was confirmed. */
export type StatementDifference =
  | 'not_in_statement'
  | 'amount_differs'
  | 'twice'
  | 'came_back'
  | 'not_confirmed'
  | 'failed_here'

/** What all rows of a statement say about one transfer. */
export interface StatementFacts {
  kind: 'invoice' | 'payout'
  state: 'open' | 'paid' | 'failed'
  amount: Paisa
  rows: readonly Pick<StatementRow, 'amount' | 'isOut'>[]
}

/** Compares a transfer with its rows; an empty list means that both agree. */
export function compareWithStatement({ kind, state, amount, rows }: StatementFacts): StatementDifference[] {
  const isOpposite = (row: Pick<StatementRow, 'isOut'>) =>
    row.isOut !== null && row.isOut !== (kind === 'payout')
  const own = rows.filter((row) => !isOpposite(row))
  const cameBack = own.length < rows.length
  const differences: (StatementDifference | false)[] = [
    state === 'paid' && own.length === 0 && 'not_in_statement',
    own.some((row) => row.amount !== amount) && 'amount_differs',
    own.length > 1 && 'twice',
    cameBack && state !== 'failed' && 'came_back',
    state === 'open' && own.length > 0 && 'not_confirmed',
    state === 'failed' && own.length > 0 && !cameBack && 'failed_here',
  ]
  return differences.filter((difference) => difference !== false)
}
