import { type LineAmount, sumOfAmounts, timesRounded } from '../../shared/line-amount.ts'
import { CURRENCY, displayMoney } from '../../shared/money.ts'
import { couponCodeInput } from '../../shared/schemas/links.ts'
import { shopDomain } from '../../shared/schemas/stores.ts'
import { parseBoundedJson, UnreadableJson } from '../platform/bounded-json.ts'
import {
  type Fields,
  isFields,
  LARGEST_AMOUNT,
  LARGEST_ORDER,
  MalformedOrder,
  type OrderNames,
  readAmount,
  readCount,
  readFlag,
  readId,
  readList,
  readMoment,
  readText,
} from './fields.ts'
import { type PlacedReference, readReferences } from './tracking.ts'

/** One line of an order. Amounts are for the whole line as it was ordered, in hundredths of the order's currency. */
export interface OrderLine {
  /** `null` for a custom item, as draft orders have them. */
  product_id: string | null
  title: string
  /** Pieces after edits and returns. */
  quantity: number
  /** Pieces as ordered: what `discount` and `tax` were worked out on. */
  original_quantity: number
  unit_price: LineAmount
  discount: LineAmount
  tax: LineAmount
  gift_card: boolean
}

/** What the service needs to know of an `orders/paid` body: plain data, all of it checked. */
export interface OrderFacts {
  order_id: string
  order_name: string
  /** Epoch ms: when the order was placed, not when it was paid. */
  created_at: number
  /** Epoch ms: when it was last changed, in whole seconds; `null` where a sender leaves it out. */
  updated_at: number | null
  /** The shop's currency, which the amounts are in (never the buyer's presentment currency). */
  currency: string
  test: boolean
  financial_status: string | null
  cancelled: boolean
  taxes_included: boolean
  /** All that the order names, lower case; none for apps without access to buyers' data. For the decision only: they must not be stored with a sale. */
  buyer_emails: string[]
  /** Of the customer, the billing and the shipping address. For the decision only, like the e-mails. */
  buyer_names: string[]
  /** In the sequence of their places. The first whose click counts is stored with the sale. */
  references: PlacedReference[]
  /** Host names under which the order shows its shop. */
  shop_hosts: string[]
  /** In the order's sequence, upper case. Most are the shop's own, so only those that belong to links are stored with a sale. */
  discount_codes: string[]
  lines: OrderLine[]
}

const MAX_LINES = 1000
const MAX_NAME = 100
const CURRENCY_CODE = /^[A-Z]{3}$/

/**
 * Reads a Shopify `orders/paid` body. Throws `MalformedOrder` for a body that no decision can be taken on; whatever is unknown
 * or not needed is passed over. `trackingParameter` names the query parameter and note attribute that carry the click.
 */
export function readOrderFacts(rawBody: string, trackingParameter: string): OrderFacts {
  const order = parseOrder(rawBody)
  try {
    return factsOf(order, trackingParameter)
  } catch (error) {
    throw error instanceof MalformedOrder ? new MalformedOrder(error.reason, namesOf(order)) : error
  }
}

function parseOrder(rawBody: string): Fields {
  try {
    const order = parseBoundedJson(rawBody)
    if (isFields(order)) return order
  } catch (error) {
    throw error instanceof UnreadableJson ? new MalformedOrder(error.reason, namesInHead(rawBody)) : error
  }
  throw new MalformedOrder('not an object')
}

function namesOf(order: Fields): OrderNames {
  return { order_id: idOf(order.id), order_name: readText(order.name, MAX_NAME) }
}

function idOf(value: unknown): string | null {
  try {
    return readId(value, 'id')
  } catch {
    return null
  }
}

/** Of a time that no decision rests on. */
function momentOrNull(value: unknown): number | null {
  try {
    return readMoment(value, '')
  } catch {
    return null
  }
}

/** Shopify writes the id first: of a body that is not parsed, at least that can be read. */
const ID_IN_HEAD = /^\s{0,100}\{\s{0,100}"id"\s{0,100}:\s{0,100}([1-9]\d{0,19})\b/

function namesInHead(rawBody: string): OrderNames {
  return { order_id: ID_IN_HEAD.exec(rawBody.slice(0, 1000))?.[1] ?? null, order_name: null }
}

function factsOf(order: Fields, trackingParameter: string): OrderFacts {
  const order_id = readId(order.id, 'id')
  const { currency } = order
  if (typeof currency !== 'string' || !CURRENCY_CODE.test(currency))
    throw new MalformedOrder('currency is no code of three letters')
  return {
    order_id,
    order_name: readText(order.name, MAX_NAME) ?? order_id,
    created_at: readMoment(order.created_at, 'created_at'),
    updated_at: momentOrNull(order.updated_at),
    currency,
    test: readFlag(order.test, 'test'),
    financial_status: readText(order.financial_status, 40),
    cancelled: order.cancelled_at !== undefined && order.cancelled_at !== null,
    taxes_included: readFlag(order.taxes_included, 'taxes_included'),
    buyer_emails: readBuyerEmails(order),
    buyer_names: readBuyerNames(order),
    shop_hosts: readShopHosts(order),
    discount_codes: readDiscountCodes(order),
    references: readReferences(order, trackingParameter),
    lines: readLines(order.line_items, currency),
  }
}

/** Staff and apps fill in some of these places only, and not always with the same address. */
function buyersOf({ customer, billing_address, shipping_address }: Fields): Fields[] {
  return [customer, billing_address, shipping_address].filter(isFields)
}

function readBuyerEmails(order: Fields): string[] {
  const values = [order.email, order.contact_email, ...buyersOf(order).map(({ email }) => email)]
  return [...new Set(values.flatMap((value) => readText(value, 320)?.toLowerCase() ?? []))]
}

function readBuyerNames(order: Fields): string[] {
  const names = buyersOf(order).flatMap((part) => {
    const both = [readText(part.first_name, 100), readText(part.last_name, 100)].filter(Boolean).join(' ')
    return [readText(part.name, 200) ?? [], both || []].flat()
  })
  return [...new Set(names)]
}

function readLines(value: unknown, currency: string): OrderLine[] {
  if (!Array.isArray(value)) throw new MalformedOrder('line_items is no list')
  if (value.length > MAX_LINES) throw new MalformedOrder(`more than ${MAX_LINES} line_items`)
  const lines = readList(value, 'line_items').map((line, index) => readLine(line, `line_items[${index}]`))
  const totalOf = (amountOf: (line: OrderLine) => number) =>
    lines.reduce((sum, line) => sum + amountOf(line), 0)
  const most = Math.max(
    totalOf((line) => timesRounded(line.unit_price, Math.max(line.quantity, line.original_quantity))),
    totalOf((line) => Number(line.discount)),
    totalOf((line) => Number(line.tax)),
  )
  if (currency === CURRENCY && most > LARGEST_ORDER)
    throw new MalformedOrder(
      `its amounts exceed ${displayMoney(LARGEST_ORDER)}, the most that an order may have`,
    )
  if (most > LARGEST_AMOUNT) throw new MalformedOrder('amounts are out of range')
  return lines
}

function readLine(line: Fields, name: string): OrderLine {
  const original_quantity = readCount(line.quantity, `${name}.quantity`)
  const quantity = line.current_quantity ?? null
  const product_id = line.product_id ?? null
  return {
    product_id: product_id === null ? null : readId(product_id, `${name}.product_id`),
    title: readText(line.title, 255) ?? '',
    quantity: quantity === null ? original_quantity : readCount(quantity, `${name}.current_quantity`),
    original_quantity,
    unit_price: readAmount(line.price, `${name}.price`),
    discount: sumOf(line.discount_allocations, 'amount', `${name}.discount_allocations`),
    tax: sumOf(line.tax_lines, 'price', `${name}.tax_lines`),
    gift_card: readFlag(line.gift_card, `${name}.gift_card`),
  }
}

function sumOf(list: unknown, field: 'amount' | 'price', name: string): LineAmount {
  return sumOfAmounts(readList(list, name).map((entry) => readAmount(entry[field], `${name}.${field}`)))
}

const LONGEST_ADDRESS = 2048

/** The host names under which the order shows its shop: of the buyer's order page, and of the session's first page where that is a whole address. */
function readShopHosts(order: Fields): string[] {
  return [...new Set([order.order_status_url, order.landing_site].flatMap(hostIn))]
}

function hostIn(value: unknown): string[] {
  if (typeof value !== 'string' || value.length > LONGEST_ADDRESS || !/^https?:\/\//i.test(value)) return []
  if (!URL.canParse(value)) return []
  const host = shopDomain.safeParse(new URL(value).hostname)
  return host.success ? [host.data] : []
}

/** Shopify combines a handful of codes at most; a signed body may name any number. */
const MAX_CODES = 25

/**
 * The discount codes of an order that can be coupon codes, upper case and without repeats, in the order's sequence. Shopify compares codes
 * without case. A code of another shape is passed over.
 */
function readDiscountCodes(order: Fields): string[] {
  if (!Array.isArray(order.discount_codes)) return []
  const codes = order.discount_codes.slice(0, MAX_CODES).flatMap((discount) => {
    const code = couponCodeInput.safeParse(discount?.code)
    return code.success ? [code.data] : []
  })
  return [...new Set(codes)]
}
