import { HOUR, MINUTE, midnightOf } from './calendar.ts'
import { type Fraction, fractionOf, NONE, plus, shareOf } from './exact.ts'

/** What an `orders/paid` body says, read by the oracle itself. Amounts in paisa, times in epoch ms. */
export interface Order {
  id: string
  placedAt: number
  /** When it was last changed; when it was placed, where it does not say. */
  updatedAt: number
  currency: string
  test: boolean
  financialStatus: string | null
  cancelled: boolean
  taxesIncluded: boolean
  buyerEmails: string[]
  /** What stood where a tracking reference belongs, place by place. */
  references: string[]
  /** Discount codes, upper case, in the body's sequence. */
  codes: string[]
  lines: OrderLine[]
  /** Refunded without naming items, paisa. */
  refunded: number
  hasRefunds: boolean
}

export interface OrderLine {
  productId: string | null
  ordered: number
  remaining: number
  price: Fraction
  discount: Fraction
  tax: Fraction
  giftCard: boolean
  /** A tip or a fee. */
  extra: boolean
  /** The shop has deleted its product. */
  deleted: boolean
}

/** A number of a body as it was written: order ids have more digits than a JavaScript number. */
interface Numeral {
  digits: string
}

type Fields = Record<string, unknown>

class Unreadable extends Error {}

// The reviver's third argument is newer than the type library.
type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown
const parseJson: (text: string, reviver: Reviver) => unknown = JSON.parse

/** `null`: no decision can be taken on such a body. */
export function readOrder(text: string, parameter: string): Order | null {
  try {
    const body = parseJson(text, (_key, value, context) =>
      typeof value === 'number' ? { digits: context?.source ?? '' } : value,
    )
    return orderOf(fieldsOf(body), parameter)
  } catch (error) {
    if (error instanceof Unreadable || error instanceof SyntaxError) return null
    throw error
  }
}

function orderOf(body: Fields, parameter: string): Order {
  return {
    id: idOf(body.id),
    placedAt: momentOf(body.created_at),
    updatedAt: momentOf(body.updated_at ?? body.created_at),
    currency: matching(body.currency, /^[A-Z]{3}$/),
    test: flagOf(body.test),
    financialStatus: typeof body.financial_status === 'string' ? body.financial_status : null,
    cancelled: body.cancelled_at !== null && body.cancelled_at !== undefined,
    taxesIncluded: flagOf(body.taxes_included),
    buyerEmails: emailsOf(body),
    references: [
      ...attributesIn(body.note_attributes, parameter),
      ...addressesIn(body.note_attributes, parameter),
      ...lineReferences(body.line_items, `_${parameter}`),
      ...landingReferences(body, parameter),
    ],
    codes: codesOf(body),
    lines: listOf(body.line_items).map((line) => lineOf(line, body)),
    refunded: refundedIn(body.refunds),
    hasRefunds: Array.isArray(body.refunds) && body.refunds.length > 0,
  }
}

/** What adjustments say was given back beyond the returned items. */
function refundedIn(refunds: unknown): number {
  const adjustments = (Array.isArray(refunds) ? (refunds as Fields[]) : []).flatMap(
    (refund) => (refund.order_adjustments ?? []) as Fields[],
  )
  const ofGoods = adjustments.filter(({ kind }) => kind !== 'shipping_refund')
  const total = ofGoods.reduce((paisa, { amount }) => paisa + givenBack(amount), 0)
  return Math.max(0, total)
}

/** Adjustments are below zero for what was given back beyond the items. */
function givenBack(amount: unknown): number {
  const text = String(amount)
  const paisa = shareOf(amountOf(text.replace('-', '')), 1, 1)
  return text.startsWith('-') ? paisa : -paisa
}

function lineOf(line: Fields, body: Fields): OrderLine {
  const ordered = countOf(line.quantity)
  const extra = 'tip_payment_gateway' in line || FEES.includes(String(line.title).toLowerCase())
  return {
    productId: line.product_id === null || line.product_id === undefined ? null : idOf(line.product_id),
    ordered,
    remaining:
      line.current_quantity === undefined || line.current_quantity === null
        ? Math.max(0, ordered - returnedOf(line, body))
        : countOf(line.current_quantity),
    price: amountOf(line.price),
    discount: discountOf(line, body),
    tax: sum(listOf(line.tax_lines ?? []).map((one) => amountOf(one.price))),
    giftCard: flagOf(line.gift_card),
    extra,
    deleted:
      !extra &&
      line.product_exists === false &&
      !flagOf(line.gift_card) &&
      (line.product_id ?? null) === null &&
      (body.source_name !== 'shopify_draft_order' || typeof line.sku === 'string'),
  }
}

const FEES = ['cod fee', 'delivery charges', 'cash on delivery fee']

/** Without shares, the line's own; of an order with one line, what its subtotal lacks. */
function discountOf(line: Fields, body: Fields): Fraction {
  const shares = listOf(line.discount_allocations ?? [])
  if (shares.length > 0) return sum(shares.map((one) => amountOf(one.amount)))
  const subtotal = fractionOf(body.subtotal_price)
  const alone = (body.line_items as Fields[]).length === 1 && subtotal !== null
  if (!alone || Number(body.total_discounts ?? 0) === 0) return fractionOf(line.total_discount) ?? NONE
  return lacking(line, subtotal)
}

/** The price of a line less what was paid for it. */
function lacking(line: Fields, { over, under }: Fraction): Fraction {
  const price = amountOf(line.price)
  return {
    over: price.over * BigInt(countOf(line.quantity)) * under - over * price.under,
    under: price.under * under,
  }
}

function returnedOf(line: Fields, { refunds }: Fields): number {
  const items = (Array.isArray(refunds) ? (refunds as Fields[]) : []).flatMap(
    (refund) => (refund.refund_line_items ?? []) as Fields[],
  )
  const ofLine = items.filter(({ line_item_id }) => idOf(line_item_id) === idOf(line.id))
  return ofLine.reduce((pieces, { quantity }) => pieces + countOf(quantity), 0)
}

function sum(amounts: Fraction[]): Fraction {
  return amounts.reduce(plus, NONE)
}

function fieldsOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isNumeral(value)) {
    throw new Unreadable()
  }
  return value as Fields
}

function isNumeral(value: unknown): value is Numeral {
  return typeof value === 'object' && value !== null && 'digits' in value
}

function listOf(value: unknown): Fields[] {
  if (!Array.isArray(value)) throw new Unreadable()
  return value.map(fieldsOf)
}

function idOf(value: unknown): string {
  const text = isNumeral(value) ? value.digits : value
  return matching(text, /^[1-9][0-9]*$/)
}

function matching(value: unknown, pattern: RegExp): string {
  if (typeof value !== 'string' || !pattern.test(value)) throw new Unreadable()
  return value
}

function countOf(value: unknown): number {
  if (!isNumeral(value) || !/^[0-9]+$/.test(value.digits)) throw new Unreadable()
  return Number(value.digits)
}

function amountOf(value: unknown): Fraction {
  const amount = fractionOf(value)
  if (amount === null) throw new Unreadable()
  return amount
}

function flagOf(value: unknown): boolean {
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw new Unreadable()
  return value
}

const RFC_3339 =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{3}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))$/

function momentOf(value: unknown): number {
  const match = typeof value === 'string' ? RFC_3339.exec(value) : null
  if (!match) throw new Unreadable()
  const at = (group: number) => Number(match[group] ?? 0)
  const midnight = midnightOf(at(1), at(2), at(3))
  if (midnight === null || at(4) > 23 || at(5) > 59 || at(6) > 59) throw new Unreadable()
  const offset = (match[8] === '-' ? -1 : 1) * (at(9) * HOUR + at(10) * MINUTE)
  return midnight + (at(4) * HOUR + at(5) * MINUTE + at(6) * 1000 + at(7)) - offset
}

function emailsOf(body: Fields): string[] {
  const customer =
    typeof body.customer === 'object' && body.customer !== null ? (body.customer as Fields) : {}
  return [body.email, body.contact_email, customer.email].flatMap((value) =>
    typeof value === 'string' && value.trim() !== '' ? value.trim().toLowerCase() : [],
  )
}

function codesOf(body: Fields): string[] {
  const discounts = Array.isArray(body.discount_codes) ? (body.discount_codes as Fields[]) : []
  const applied = Array.isArray(body.discount_applications) ? (body.discount_applications as Fields[]) : []
  const manual = applied
    .filter(({ type }) => type === 'manual')
    .flatMap(({ title }) => String(title).split(' '))
  const codes = [...discounts.map((discount) => discount?.code), ...manual].flatMap((value) => {
    const code = typeof value === 'string' ? value.trim() : ''
    return /^[A-Za-z0-9_-]+$/.test(code) ? code.toUpperCase() : []
  })
  return [...new Set(codes)]
}

function attributesIn(list: unknown, name: string): string[] {
  const attributes = Array.isArray(list) ? (list as Fields[]) : []
  return texts(attributes.filter((one) => one?.name === name).map((one) => one.value))
}

/** References in addresses that stand in attributes. */
function addressesIn(list: unknown, name: string): string[] {
  const values = (Array.isArray(list) ? (list as Fields[]) : []).map((one) => String(one?.value))
  return values.flatMap((value) => value.match(new RegExp(`(?<=[?&]${name}=)[^&#]+`, 'g')) ?? [])
}

function lineReferences(list: unknown, property: string): string[] {
  const lines = Array.isArray(list) ? (list as Fields[]) : []
  return lines.flatMap((line) => attributesIn(line?.properties, property))
}

function landingReferences(body: Fields, parameter: string): string[] {
  if (typeof body.landing_site !== 'string') return []
  const query = body.landing_site.split('#')[0]?.split('?').slice(1).join('?') ?? ''
  const pairs = query.split('&').map((pair) => pair.split('='))
  return texts(
    pairs.filter(([name]) => name === parameter).map(([, ...value]) => decodeURIComponent(value.join('='))),
  )
}

function texts(values: unknown[]): string[] {
  return values.flatMap((value) => (typeof value === 'string' && value.trim() !== '' ? value.trim() : []))
}
