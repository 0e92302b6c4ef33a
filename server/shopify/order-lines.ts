import { type LineAmount, sumOfAmounts, timesRounded } from '../../shared/line-amount.ts'
import { CURRENCY, displayMoney, type Paisa } from '../../shared/money.ts'
import { DEFAULT_FEE_TITLES } from '../platform/settings.ts'
import {
  amountIn,
  type Fields,
  idIn,
  isFields,
  LARGEST_AMOUNT,
  LARGEST_ORDER,
  MalformedOrder,
  readAmount,
  readCount,
  readFlag,
  readId,
  readList,
  readText,
} from './fields.ts'
import { currentAmount, orderedAmount } from './order-amounts.rule.ts'

/** One line of an order. Amounts are for the whole line as it was ordered, in hundredths of the order's currency. */
export interface OrderLine {
  /** `null` for a custom item, as draft orders have them, and for a product that was deleted since. */
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
  /** Missing for goods. */
  not_goods?: 'tip' | 'fee'
  /** Set where a line of the catalogue names no product: the shop has deleted it. Its id may be known from an earlier report. */
  product_unknown?: true
  /** The product of the bundle that this line is a part of. Missing where the body shows none. */
  bundle_product_id?: string
}

/** What a body leaves open about its amounts: for people. */
export type UnclearAmounts = 'discount' | 'refund' | 'subtotal'

/** The lines of an order, and what it says of their amounts as a whole. Fields without a value are missing. */
export interface OrderLines {
  lines: OrderLine[]
  /** Discounts that no line carried: they are part of the lines' `discount`, in proportion to the lines' amounts. */
  discount_spread?: Paisa
  /** Paid back without naming items, for example a price that was lowered at the door. Part of no line. */
  amount_refunded?: Paisa
  unclear?: UnclearAmounts[]
}

const MAX_LINES = 1000

export function readOrderLines(
  order: Fields,
  currency: string,
  feeTitles: readonly string[] = DEFAULT_FEE_TITLES,
): OrderLines {
  const value = order.line_items
  if (!Array.isArray(value)) throw new MalformedOrder('line_items is no list')
  if (value.length > MAX_LINES) throw new MalformedOrder(`more than ${MAX_LINES} line_items`)
  const about = {
    fees: plainTitles(feeTitles),
    isDraft: order.source_name === 'shopify_draft_order',
    hasTip: paisaIn(order.total_tip_received) > 0,
    returned: returnedPieces(order),
    bundles: bundleProducts(order),
  }
  const lines = readList(value, 'line_items').map((line, index) =>
    readLine(line, `line_items[${index}]`, about),
  )
  refuseLargeAmounts(lines, currency)
  return withTotals(order, lines)
}

interface AboutLines {
  fees: ReadonlySet<string>
  isDraft: boolean
  hasTip: boolean
  /** Returned pieces by the id of their line. */
  returned: ReadonlyMap<string, number>
  /** Products of bundles by the id of their group. */
  bundles: ReadonlyMap<string, string>
}

function readLine(line: Fields, name: string, about: AboutLines): OrderLine {
  const original_quantity = readCount(line.quantity, `${name}.quantity`)
  const current = line.current_quantity ?? null
  const returned = current === null ? (about.returned.get(String(line.id)) ?? 0) : 0
  const product_id = (line.product_id ?? null) === null ? null : readId(line.product_id, `${name}.product_id`)
  const title = readText(line.title, 255) ?? ''
  const not_goods = notGoods(line, product_id, title, about)
  const bundle = bundleOf(line, about)
  return {
    product_id,
    title,
    quantity:
      current === null
        ? Math.max(0, original_quantity - returned)
        : readCount(current, `${name}.current_quantity`),
    original_quantity,
    unit_price: readAmount(line.price, `${name}.price`),
    discount: discountOf(line, `${name}.discount_allocations`),
    tax: sumOf(line.tax_lines, 'price', `${name}.tax_lines`),
    gift_card: readFlag(line.gift_card, `${name}.gift_card`),
    ...(not_goods !== null && { not_goods }),
    ...(not_goods === null &&
      isUnknownProduct(line, product_id, about) && { product_unknown: true as const }),
    ...(bundle !== null && { bundle_product_id: bundle }),
  }
}

/** Older API versions and imported orders have only the line's total. */
function discountOf(line: Fields, name: string): LineAmount {
  const allocated = sumOf(line.discount_allocations, 'amount', name)
  return allocated === 0 ? (amountIn(line.total_discount) ?? 0) : allocated
}

function sumOf(list: unknown, field: 'amount' | 'price', name: string): LineAmount {
  return sumOfAmounts(readList(list, name).map((entry) => readAmount(entry[field], `${name}.${field}`)))
}

const LONGEST_FEE_TITLE = 60
const TIP_TITLES = ['tip', 'tips']

/** Shopify gives a tip's line `tip_payment_gateway`, at times `null`, and no other line. */
function notGoods(line: Fields, productId: string | null, title: string, { fees, hasTip }: AboutLines) {
  if (line.tip_payment_gateway !== undefined || line.tip_payment_method !== undefined || isFields(line.tip))
    return 'tip'
  if (title.length > LONGEST_FEE_TITLE) return null
  const plain = plainTitle(title)
  if (hasTip && productId === null && TIP_TITLES.includes(plain)) return 'tip'
  return fees.has(plain) ? 'fee' : null
}

/** What is left of a title for comparisons: its words without numbers, marks and the currency, in small letters. */
function plainTitle(title: string): string {
  const words = title
    .normalize('NFKC')
    .toLowerCase()
    .split(/[^\p{L}\p{M}]+/u)
  return words.filter((word) => word !== '' && word !== 'rs' && word !== 'pkr').join(' ')
}

const plainTitleSets = new WeakMap<readonly string[], ReadonlySet<string>>()

function plainTitles(titles: readonly string[]): ReadonlySet<string> {
  const known = plainTitleSets.get(titles)
  if (known) return known
  const made = new Set(titles.map(plainTitle).filter((title) => title !== ''))
  plainTitleSets.set(titles, made)
  return made
}

/** Custom items, which only staff can add, never had a product: they have none of what the catalogue gives a line. */
function isUnknownProduct(line: Fields, productId: string | null, { isDraft }: AboutLines): boolean {
  if (productId !== null || line.product_exists !== false || line.gift_card === true) return false
  if (!isDraft) return true
  const { sku, vendor, variant_title, variant_inventory_management } = line
  return [sku, vendor, variant_title, variant_inventory_management].some(
    (text) => readText(text, 255) !== null,
  )
}

/** Bundle apps give the parts of a bundle a common group, which may name the bundle's product. */
function bundleOf(line: Fields, { bundles }: AboutLines): string | null {
  const group = isFields(line.line_item_group) ? line.line_item_group : {}
  const groupId = idIn(line.sales_line_item_group_id) ?? idIn(group.id)
  return idIn(group.product_id) ?? (groupId === null ? null : (bundles.get(groupId) ?? null))
}

function bundleProducts({ line_item_groups }: Fields): Map<string, string> {
  return new Map(
    objectsIn(line_item_groups).flatMap(({ id, product_id }) => {
      const [group, product] = [idIn(id), idIn(product_id)]
      return group === null || product === null ? [] : [[group, product] as const]
    }),
  )
}

/** API versions before 2024 do not say how many pieces of a line are left. */
function returnedPieces({ refunds }: Fields): Map<string, number> {
  const returned = new Map<string, number>()
  const items = objectsIn(refunds).flatMap(({ refund_line_items }) => objectsIn(refund_line_items))
  for (const { line_item_id, quantity } of items) {
    const id = String(line_item_id)
    if (typeof quantity === 'number' && quantity > 0) returned.set(id, (returned.get(id) ?? 0) + quantity)
  }
  return returned
}

function refuseLargeAmounts(lines: readonly OrderLine[], currency: string): void {
  const totalOf = (amountOf: (line: OrderLine) => number) => sumBy(lines, amountOf)
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
}

function withTotals(order: Fields, read: OrderLine[]): OrderLines {
  const spread = spreadDiscount(order, read)
  const { lines } = spread
  const refund = refundedAmount(order, lines)
  const amount_refunded = Math.min(refund.amount, sumBy(lines, currentAmount))
  const unclear: UnclearAmounts[] = []
  if (spread.unclear) unclear.push('discount')
  if (refund.unclear) unclear.push('refund')
  if (!spread.unclear && !isSubtotal(order, lines, amount_refunded)) unclear.push('subtotal')
  return {
    lines,
    ...(spread.amount > 0 && { discount_spread: spread.amount }),
    ...(amount_refunded > 0 && { amount_refunded }),
    ...(unclear.length > 0 && { unclear }),
  }
}

interface Spread {
  lines: OrderLine[]
  amount: Paisa
  unclear: boolean
}

/**
 * Discounts of the order that no line carries are spread over its lines: as much as the subtotal lacks. Without a subtotal they are the
 * goods' if shipping is free; otherwise the body does not tell.
 */
function spreadDiscount(order: Fields, lines: OrderLine[]): Spread {
  const nothing = { lines, amount: 0, unclear: false }
  const shipping = objectsIn(order.shipping_lines)
  const ofShipping = shipping.flatMap(({ discount_allocations }) => objectsIn(discount_allocations))
  const carried =
    sumBy(lines, ({ discount }) => timesRounded(discount, 1)) +
    sumBy(ofShipping, ({ amount }) => paisaIn(amount))
  const left = paisaIn(order.total_discounts) - carried
  if (left <= 0) return nothing
  const subtotal = statedIn(order.subtotal_price)
  const inSubtotal = lines.filter(({ not_goods }) => not_goods !== 'tip')
  const ordered = sumBy(inSubtotal, orderedAmount)
  const missing = subtotal === null ? left : ordered - subtotal
  if (missing === 0) return nothing
  const isFree = shipping.every(({ price }) => paisaIn(price) === 0)
  if (missing < 0 || missing > Math.min(left, ordered) || (subtotal === null && !isFree))
    return { ...nothing, unclear: subtotal === null }
  return { lines: withDiscount(lines, missing, ordered), amount: missing, unclear: false }
}

/** Adds `discount` to the lines in proportion to their amounts, to the paisa. `total`: of the lines but tips. */
function withDiscount(lines: readonly OrderLine[], discount: Paisa, total: Paisa): OrderLine[] {
  let [amounts, given] = [0, 0]
  return lines.map((line) => {
    if (line.not_goods === 'tip') return line
    amounts += orderedAmount(line)
    const share = timesRounded(discount, amounts, total) - given
    given += share
    return { ...line, discount: sumOfAmounts([line.discount, share]) }
  })
}

/**
 * What was paid back without naming items. A refund's adjustments say how far it differs from its items: below zero when more was paid
 * back than their price. `unclear` when the order is partially refunded and the body does not show what for.
 */
function refundedAmount(order: Fields, lines: readonly OrderLine[]): { amount: Paisa; unclear: boolean } {
  const refunds = objectsIn(order.refunds)
  const amount = sumBy(refunds, refundWithoutItems)
  const isShown = refunds.length > 0 || lines.some((line) => line.quantity < line.original_quantity)
  return {
    amount: Math.max(0, amount),
    unclear: order.financial_status === 'partially_refunded' && !isShown,
  }
}

function refundWithoutItems(refund: Fields): Paisa {
  const adjustments = objectsIn(refund.order_adjustments)
  const items = objectsIn(refund.refund_line_items)
  const ofShipping = objectsIn(refund.refund_shipping_lines)
  if (adjustments.length + items.length + ofShipping.length > 0)
    return -sumBy(adjustments, (one) => (isShippingRefund(one) ? 0 : signedPaisaIn(one.amount)))
  const isPayment = ({ kind, status }: Fields) => kind === 'refund' && (status ?? 'success') === 'success'
  return sumBy(objectsIn(refund.transactions).filter(isPayment), ({ amount }) => paisaIn(amount))
}

function isShippingRefund({ kind, reason }: Fields): boolean {
  return kind === 'shipping_refund' || (typeof reason === 'string' && /shipping/i.test(reason.slice(0, 100)))
}

/** Whether the lines add up to the subtotal that the store states: as ordered, or as they are now. Each line may be a paisa off. */
function isSubtotal(order: Fields, lines: readonly OrderLine[], refunded: Paisa): boolean {
  const stated = [order.subtotal_price, order.current_subtotal_price].map(statedIn)
  if (stated.every((amount) => amount === null)) return true
  const inSubtotal = lines.filter(({ not_goods }) => not_goods !== 'tip')
  const current = sumBy(inSubtotal, currentAmount)
  const [asOrdered, asOfNow] = stated
  const isNear = (amount: Paisa, sum: Paisa) => Math.abs(amount - sum) <= lines.length
  const isCurrent = (amount: Paisa) => isNear(amount, current) || isNear(amount, current - refunded)
  if (typeof asOfNow === 'number') return isCurrent(asOfNow)
  if (typeof asOrdered !== 'number') return true
  return isCurrent(asOrdered) || isNear(asOrdered, sumBy(inSubtotal, orderedAmount))
}

function objectsIn(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : []
}

function sumBy<Item>(items: readonly Item[], amountOf: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + amountOf(item), 0)
}

function statedIn(value: unknown): Paisa | null {
  const amount = amountIn(value)
  return amount === null ? null : timesRounded(amount, 1)
}

/** An amount that is only compared or spread, rounded to the paisa; 0 where there is none. */
function paisaIn(value: unknown): Paisa {
  return timesRounded(amountIn(value) ?? 0, 1)
}

function signedPaisaIn(value: unknown): Paisa {
  return typeof value === 'string' && value.startsWith('-') ? -paisaIn(value.slice(1)) : paisaIn(value)
}
