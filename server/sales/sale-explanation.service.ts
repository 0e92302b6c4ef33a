import { cycleShares, getCycle } from '../billing/billing.service.ts'
import { creditRequestAbout } from '../billing/credit-requests.service.ts'
import type { EventRow } from '../inbox/events.service.ts'
import { originsOf } from '../inbox/operator-deliveries.service.ts'
import { unreadableOrders } from '../inbox/set-aside.service.ts'
import { offerRecords } from '../offers/offers.service.ts'
import { sharePayouts } from '../payouts/payouts.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Queries } from '../platform/database/database.ts'
import type { ScanScope } from '../platform/database/keyset-scan.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { listAttempts } from '../processor/attempts.service.ts'
import { shopDomainsOf, storeIdsOf } from '../stores/stores.service.ts'
import { type PersonRow, peopleOf } from '../users/users.service.ts'
import { attributionOf, orderSource, readReceipt, type SaleReceipt } from './accept-sale.rule.ts'
import {
  findSale,
  findSalesByOrder,
  formerDecisions,
  type SaleRow,
  type SaleWithSlug,
} from './sales.store.ts'

interface OfShop {
  shopDomain: string | null
}

/** A sale that an operator's search for an order matches. */
export type OrderCandidate = SaleWithSlug & OfShop

/**
 * The sales that match `order`: a sale id, the store's order id, or the order name with or without its `#`. An id takes precedence over
 * an equal name. `store` (id or host name) narrows the search. Throws `not_found` when nothing matches.
 */
export async function findOrder(
  platform: Platform,
  order: string,
  store: string | null,
): Promise<OrderCandidate[]> {
  const db = platform.database.reader
  const storeIds = await storeIdsOf(db, store)
  if (store !== null && storeIds.length === 0) throw new Refusal('not_found', `Store ${store} not found.`)
  const id = order.trim().toLowerCase()
  const sale = isId(id) ? await findSale(db, 'all', id) : undefined
  const sales = sale
    ? [sale].filter(({ store_id }) => storeIds.includes(store_id))
    : await searchOrder(order, (by) => findSalesByOrder(db, by, storeIds))
  if (sales.length === 0) throw new Refusal('not_found', `No sale found for order ${order}.`)
  return withShopDomains(db, sales, (found) => found.store_id)
}

/** A signed order that was set aside because it could not be read; it has no sale. `scope` is its store's id. */
export type SetAsideOrder = EventRow & OfShop

/**
 * The set-aside orders that match `order`: an order id, or a name with or without its `#`, where these could be read. `store` (id or
 * host name) narrows the search. Newest first.
 */
export async function findSetAsideOrders(
  platform: Platform,
  order: string,
  store: string | null,
): Promise<SetAsideOrder[]> {
  const db = platform.database.reader
  const storeIds = store === null ? null : await storeIdsOf(db, store)
  const events = await searchOrder(order, (by) => unreadableOrders(db, by, storeIds))
  return withShopDomains(db, events, (event) => event.scope)
}

/** What is found by the order's id, or else by its name, or else by its name with a `#`. */
export async function searchOrder<Found>(
  order: string,
  find: (by: { id: string } | { name: string }) => Promise<Found[]>,
): Promise<Found[]> {
  const text = order.trim()
  for (const by of [{ id: text }, { name: text }, ...(text.startsWith('#') ? [] : [{ name: `#${text}` }])]) {
    const found = await find(by)
    if (found.length > 0) return found
  }
  return []
}

async function withShopDomains<Found>(db: Queries, found: Found[], storeIdOf: (one: Found) => string) {
  const domains = await shopDomainsOf(db, [...new Set(found.map(storeIdOf))])
  return found.map((one) => ({ ...one, shopDomain: domains.get(storeIdOf(one)) ?? null }))
}

/** The names of what an order is about. */
export interface OrderNames {
  /** `null`, like the creator, unless the order named a link of this merchant. */
  offer: { id: string; title: string } | null
  creator: { id: string; display_name: string } | null
  store: { id: string; shop_domain: string }
}

/** A sale with the names of what it is about. */
export type NamedSale = SaleWithSlug & OrderNames

export async function withNames<Order extends Pick<SaleRow, 'offer_id' | 'creator_id' | 'store_id'>>(
  platform: Platform,
  sales: readonly Order[],
  db: Queries = platform.database.reader,
): Promise<(Order & OrderNames)[]> {
  const offerIds = new Set(sales.flatMap(({ offer_id }) => offer_id ?? []))
  const offers = await offerRecords(platform, db, [...offerIds])
  const creatorIds = sales.map(({ creator_id }) => creator_id)
  const people = await peopleOf(db, creatorIds)
  const domains = await shopDomainsOf(db, [...new Set(sales.map(({ store_id }) => store_id))])
  const nameOf = (id: string) => people.get(id)?.display_name ?? ''
  return sales.map((sale) => {
    const { offer_id, creator_id, store_id } = sale
    return {
      ...sale,
      offer: offer_id === null ? null : { id: offer_id, title: offers.get(offer_id)?.title ?? '' },
      creator: creator_id === null ? null : { id: creator_id, display_name: nameOf(creator_id) },
      store: { id: store_id, shop_domain: domains.get(store_id) ?? '' },
    }
  })
}

export type SaleExplanation = Awaited<ReturnType<typeof explainSale>>

/**
 * Explains a sale in scope to an operator: the decision, its basis and its consequences. `wireExplanation` leaves out what is private to
 * others than its merchant or creator. Amounts in paisa, rates in basis points, times in epoch ms. Throws `not_found`.
 */
export async function explainSale(platform: Platform, scope: ScanScope, saleId: string) {
  const db = platform.database.reader
  const found = await findSale(db, scope, saleId)
  if (!found) throw new Refusal('not_found', 'Sale not found.')
  const [sale] = (await withNames(platform, [found])) as [NamedSale]
  const people = await peopleOf(db, [sale.merchant_id, sale.creator_id])
  const origins = await originsOf(db, [{ id: sale.event_id, source: 'store' }])
  const receipt = readReceipt(sale.receipt) as SaleReceipt
  const { click, coupons } = receipt.facts
  const attribution = attributionOf(receipt.facts)
  return {
    sale,
    decidedAt: sale.decided_at ?? sale.created_at,
    /** The sender of the order: the store, or an operator on its behalf. */
    origin: origins.get(sale.event_id) ?? 'store',
    merchant: people.get(sale.merchant_id) as PersonRow,
    creator: people.get(sale.creator_id ?? '') ?? null,
    receipt,
    /** The click that the order named; `null` unless its link belongs to this merchant. Earns nothing if `coupon` is set. */
    click: click?.link.merchant_id === sale.merchant_id ? click : null,
    /** The coupon code that earned the commission. */
    coupon: coupons?.find(({ code }) => code === attribution?.code) ?? null,
    /** Where the order named its link. */
    source: orderSource(receipt.facts),
    /** The link that the sale is credited to, with its locked terms. */
    link: attribution?.link ?? null,
    /** At most one: of an order that was first reported as unpaid. */
    formerDecisions: (await formerDecisions(db, [sale.id])).map((former) => {
      return { ...former, receipt: readReceipt(former.receipt) as SaleReceipt }
    }),
    /** The last one; `null` without one. */
    creditRequest: await creditRequestAbout(db, sale.id),
    /** `null` for a rejected sale. */
    cycle: await cycleOfSale(db, sale),
    /** The payouts that carried the creator's share of that cycle, oldest first, including failed ones. */
    payouts:
      sale.billing_cycle_id === null || sale.creator_id === null
        ? []
        : await sharePayouts(db, sale.billing_cycle_id, sale.creator_id),
  }
}

export type SaleCycle = NonNullable<SaleExplanation['cycle']>

async function cycleOfSale(db: Queries, sale: SaleRow) {
  const cycle = sale.billing_cycle_id ? await getCycle(db, sale.billing_cycle_id) : undefined
  if (!cycle) return null
  const attempt = (await listAttempts(db, 'invoice', cycle.id)).at(-1)
  const share = (await cycleShares(db, cycle.id)).find((row) => row.creator_id === sale.creator_id)
  return {
    ...cycle,
    /** The error of the last attempt to create the invoice; `null` once it exists. */
    invoiceProblem: attempt && attempt.state !== 'created' ? attempt.detail : null,
    /** The creator's commission in the whole cycle, which the payout carries. */
    creatorShare: share?.commission ?? 0,
    releasedAt: share?.released_at ?? null,
  }
}
