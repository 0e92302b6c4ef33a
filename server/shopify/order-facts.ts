import { withoutInvisible } from '../../shared/pasted-text.ts'
import { couponCodeInput } from '../../shared/schemas/links.ts'
import { shopDomain } from '../../shared/schemas/stores.ts'
import { parseBoundedJson, UnreadableJson } from '../platform/bounded-json.ts'
import {
  type Fields,
  idIn,
  isFields,
  MalformedOrder,
  type OrderNames,
  readFlag,
  readId,
  readMoment,
  readText,
} from './fields.ts'
import { type OrderLines, readOrderLines } from './order-lines.ts'
import { type PlacedReference, readReferences } from './tracking.ts'

export type { OrderLine } from './order-lines.ts'

/** What the service needs to know of an `orders/paid` body: plain data, all of it checked. */
export interface OrderFacts extends OrderLines {
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
}

const MAX_NAME = 100
const CURRENCY_CODE = /^[A-Z]{3}$/

/**
 * Reads a Shopify `orders/paid` body. Throws `MalformedOrder` for a body that no decision can be taken on; whatever is unknown
 * or not needed is passed over. `trackingParameter` names the query parameter and note attribute that carry the click, `feeTitles` the
 * lines that are fees.
 */
export function readOrderFacts(
  rawBody: string,
  trackingParameter: string,
  feeTitles?: readonly string[],
): OrderFacts {
  const order = parseOrder(rawBody)
  try {
    return factsOf(order, trackingParameter, feeTitles)
  } catch (error) {
    throw error instanceof MalformedOrder ? new MalformedOrder(error.reason, namesOf(order)) : error
  }
}

function parseOrder(rawBody: string): Fields {
  try {
    const order = parseBoundedJson(rawBody, isNotRead)
    if (isFields(order)) return order
  } catch (error) {
    if (!(error instanceof UnreadableJson)) throw error
    throw new MalformedOrder(isXml(rawBody) ? XML_BODY : error.reason, namesInHead(rawBody))
  }
  throw new MalformedOrder('not an object')
}

/** The reason of a body whose webhook was made with the other format. */
export const XML_BODY = 'XML instead of JSON'

function isXml(body: string): boolean {
  return body.slice(0, 100).trimStart().startsWith('<')
}

const [LETTER_M, LETTER_S, LETTER_T] = [0x6d, 0x73, 0x74]

/**
 * Most of a body repeats the rest of it: amounts in two currencies (`price_set`), and lines that were sent (`fulfillments`) or returned
 * (`line_item` of a refund).
 */
function isNotRead(text: string, start: number, end: number): boolean {
  const last = text.charCodeAt(end - 1)
  if (last === LETTER_T) return end - start > 4 && text.startsWith('_set', end - 4)
  if (last === LETTER_S) return end - start === 12 && text.startsWith('fulfillments', start)
  return last === LETTER_M && end - start === 9 && text.startsWith('line_item', start)
}

function namesOf(order: Fields): OrderNames {
  return { order_id: idIn(order.id), order_name: readText(order.name, MAX_NAME) }
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

function factsOf(
  order: Fields,
  trackingParameter: string,
  feeTitles: readonly string[] | undefined,
): OrderFacts {
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
    ...readOrderLines(order, currency, feeTitles),
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
const MAX_TITLE = 255

/**
 * What can be coupon codes of an order, upper case and without repeats: its discount codes in their sequence, then those that only its
 * discount applications name. Staff enter the code of an order by telephone as the title of a manual discount, often among other words.
 * A code of another shape is passed over. Shopify compares codes without case.
 */
function readDiscountCodes(order: Fields): string[] {
  const entered = listIn(order.discount_codes).map((discount) => discount?.code)
  const applied = listIn(order.discount_applications).flatMap((discount) => {
    const { type, code, title, description } = discount ?? {}
    if (type === 'discount_code') return [code, title]
    return type === 'manual' ? [title, description].flatMap(wordsIn) : []
  })
  const codes = [...entered, ...applied].flatMap((text) => {
    if (typeof text !== 'string' || text.length > MAX_TITLE) return []
    const code = couponCodeInput.safeParse(withoutInvisible(text))
    return code.success ? [code.data] : []
  })
  return [...new Set(codes)].slice(0, MAX_CODES)
}

function listIn(value: unknown): (Fields | null | undefined)[] {
  return Array.isArray(value) ? value.slice(0, MAX_CODES) : []
}

function wordsIn(text: unknown): string[] {
  return typeof text === 'string' ? text.slice(0, MAX_TITLE).split(/[\s,;:()"']+/) : []
}
