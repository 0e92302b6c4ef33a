import { exactAmount, type LineAmount } from '../../shared/line-amount.ts'
import type { Paisa } from '../../shared/money.ts'

/** What could be read of a malformed order, so that people find it. */
export interface OrderNames {
  order_id: string | null
  order_name: string | null
}

const NO_NAMES: OrderNames = { order_id: null, order_name: null }

/**
 * A validly signed body that is not an order we can decide on: the event is set aside and flagged with `reason`. The reason names
 * the field and never repeats its value, because the value may be a buyer's.
 */
export class MalformedOrder extends Error {
  readonly reason: string
  readonly names: OrderNames

  constructor(reason: string, names: OrderNames = NO_NAMES) {
    super(`malformed order: ${reason}`)
    this.name = 'MalformedOrder'
    this.reason = reason
    this.names = names
  }
}

export type Fields = Record<string, unknown>

/** The largest order in PKR, a billion rupees in paisa: far above honest trade. See decision 3. */
export const LARGEST_ORDER: Paisa = 100_000_000_000
/** In hundredths of any other currency: no sum or product over an order loses a digit. */
export const LARGEST_AMOUNT = 10_000_000_000_000

const ID = /^[1-9]\d{0,19}$/
const AMOUNT = /^(\d{1,11})(?:\.(\d{1,20}))?$/
const MOMENT = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/
const CONTROLS = /\p{Cc}/gu

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The objects of a list; a list that is missing or null is empty. */
export function readList(value: unknown, name: string): Fields[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || !value.every(isFields))
    throw new MalformedOrder(`${name} is no list of objects`)
  return value
}

/** A store's id as its digits, or `null` where there is none; see `parseBoundedJson` for ids above 2^53. */
export function idIn(value: unknown): string | null {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return String(value)
  return typeof value === 'string' && ID.test(value) ? value : null
}

export function readId(value: unknown, name: string): string {
  const id = idIn(value)
  if (id !== null) return id
  throw new MalformedOrder(
    `${name} is ${value === undefined || value === null ? 'missing' : 'no whole number above 0'}`,
  )
}

/**
 * A decimal string that is not negative, exactly, in hundredths of its currency (paisa for PKR), or `null` where there is none. Shopify
 * writes two places; some apps more.
 */
export function amountIn(value: unknown): LineAmount | null {
  const match = typeof value === 'string' ? AMOUNT.exec(value) : null
  if (!match) return null
  const [, whole = '0', fraction = ''] = match
  return exactAmount(whole, fraction)
}

export function readAmount(value: unknown, name: string): LineAmount {
  const amount = amountIn(value)
  if (amount === null) throw new MalformedOrder(`${name} is no decimal amount in a string`)
  return amount
}

export function readCount(value: unknown, name: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new MalformedOrder(`${name} is no whole number of pieces`)
}

/** A flag that Shopify may leave out: missing and null mean false. */
export function readFlag(value: unknown, name: string): boolean {
  if (value === undefined || value === null) return false
  if (typeof value === 'boolean') return value
  throw new MalformedOrder(`${name} is neither true nor false`)
}

/** RFC 3339 with an offset → epoch ms. Days that the calendar does not have are refused; `Date.parse` would move them on. */
export function readMoment(value: unknown, name: string): number {
  const match = typeof value === 'string' ? MOMENT.exec(value) : null
  const moment = match ? Date.parse(match[0]) : Number.NaN
  if (!match || Number.isNaN(moment)) throw new MalformedOrder(`${name} is no RFC 3339 time with an offset`)
  const [, year, month, day] = match.map(Number)
  if (new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day)).getUTCDate() !== day) {
    throw new MalformedOrder(`${name} is a day that does not exist`)
  }
  return moment
}

/**
 * Text of at most `limit` characters, or `null` when there is none. Control characters go, and halves of surrogate pairs: a zero
 * character is one that PostgreSQL refuses to store.
 */
export function readText(value: unknown, limit: number): string | null {
  if (typeof value !== 'string') return null
  const text = value.slice(0, limit).replace(CONTROLS, ' ').toWellFormed().trim()
  return text === '' ? null : text
}
