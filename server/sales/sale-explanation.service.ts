import type { Paisa } from '../../shared/money.ts'
import type { OrderSource } from '../../shared/schemas/stores.ts'
import { type CycleRow, cycleShares, getCycle } from '../billing/billing.service.ts'
import { type EventOrigin, originsOf } from '../inbox/operator-deliveries.service.ts'
import { type UnreadableOrder, unreadableOrders } from '../inbox/set-aside.service.ts'
import type { LinkTerms } from '../links/links.service.ts'
import { offerRecords } from '../offers/offers.service.ts'
import { type PayoutRow, sharePayouts } from '../payouts/payouts.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Queries } from '../platform/database/database.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { listAttempts } from '../processor/attempts.service.ts'
import { shopDomainsOf, storeIdsOf } from '../stores/stores.service.ts'
import { peopleOf } from '../users/users.service.ts'
import { attributionOf, orderSource, type SaleDecision, type SaleReceipt } from './accept-sale.rule.ts'
import type { SaleClick, SaleCoupon } from './sale-facts.ts'
import {
  findSale,
  findSalesByOrder,
  formerDecisions,
  type SaleRow,
  type SaleScope,
  type SaleWithSlug,
} from './sales.store.ts'

/** A sale that an operator's search for an order matches. */
export interface OrderCandidate extends SaleWithSlug {
  shopDomain: string | null
}

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
  const storeIds = store === null ? null : await storeIdsOf(db, store)
  if (storeIds?.length === 0) throw new Refusal('not_found', `Store ${store} not found.`)
  const sales = await findMatchingSales(db, order.trim(), storeIds)
  if (sales.length === 0) throw new Refusal('not_found', `No sale found for order ${order}.`)
  const domains = await shopDomainsOf(
    db,
    sales.map((sale) => sale.store_id),
  )
  return sales.map((sale) => ({ ...sale, shopDomain: domains.get(sale.store_id) ?? null }))
}

async function findMatchingSales(
  db: Queries,
  order: string,
  storeIds: string[] | null,
): Promise<SaleWithSlug[]> {
  const sale = isId(order.toLowerCase()) ? await findSale(db, 'all', order.toLowerCase()) : undefined
  if (sale) return storeIds?.includes(sale.store_id) === false ? [] : [sale]
  const byId = await findSalesByOrder(db, { id: order }, storeIds)
  if (byId.length > 0) return byId
  const byName = await findSalesByOrder(db, { name: order }, storeIds)
  return byName.length > 0 || order.startsWith('#')
    ? byName
    : findSalesByOrder(db, { name: `#${order}` }, storeIds)
}

/** A signed order that was set aside because it could not be read; it has no sale. `scope` is its store's id. */
export interface SetAsideOrder extends UnreadableOrder {
  shopDomain: string | null
}

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
  const name = order.trim()
  const byId = await unreadableOrders(db, { id: name }, storeIds)
  const byName = byId.length > 0 ? [] : await unreadableOrders(db, { name }, storeIds)
  const events =
    byId.length + byName.length > 0 || name.startsWith('#')
      ? [...byId, ...byName]
      : await unreadableOrders(db, { name: `#${name}` }, storeIds)
  const domains = await shopDomainsOf(db, [...new Set(events.map(({ scope }) => scope))])
  return events.map((event) => ({ ...event, shopDomain: domains.get(event.scope) ?? null }))
}

interface Party {
  id: string
  displayName: string | null
  email: string | null
}

/** The decision about a sale, its basis and its consequences. Amounts in paisa, rates in basis points, times in epoch ms. */
export interface SaleExplanation extends SaleOutcome {
  saleId: string
  eventId: string
  /** The sender of the order: the store, or an operator on its behalf. */
  origin: EventOrigin
  orderId: string
  orderName: string | null
  orderedAt: number
  decidedAt: number
  store: { id: string; shopDomain: string | null }
  merchant: Party
  /** The click that the order named; `null` unless its link belongs to this merchant. Earns nothing if `coupon` is set. */
  click: SaleClick | null
  /** The coupon code that earned the commission. */
  coupon: SaleCoupon | null
  /** Where the order named its link. */
  source: OrderSource
  /** The link that the sale is credited to, with its locked terms. */
  link: LinkTerms | null
  creator: Party | null
  offer: { id: string; title: string | null } | null
  decision: SaleDecision
  /** Earlier decisions with their events, oldest first. */
  formerDecisions: { decidedAt: number; eventId: string; decision: SaleDecision }[]
}

/** Explains one sale to an operator. Throws `not_found`. */
export async function explainSale(platform: Platform, saleId: string): Promise<SaleExplanation> {
  const db = platform.database.reader
  const sale = await findSale(db, 'all', saleId)
  if (!sale) throw new Refusal('not_found', `Sale ${saleId} not found.`)
  const { receipt, formerReceipts, people, offerTitle, outcome } = await loadExplanation(platform, db, sale)
  const domains = await shopDomainsOf(db, [sale.store_id])
  const origins = await originsOf(db, [{ id: sale.event_id, source: 'store' }])
  const party = (id: string) => ({
    id,
    displayName: people.get(id)?.display_name ?? null,
    email: people.get(id)?.email ?? null,
  })
  return {
    saleId: sale.id,
    eventId: sale.event_id,
    origin: origins.get(sale.event_id) ?? 'store',
    orderId: sale.order_id,
    orderName: sale.order_name,
    orderedAt: sale.ordered_at,
    decidedAt: sale.decided_at ?? sale.created_at,
    store: { id: sale.store_id, shopDomain: domains.get(sale.store_id) ?? null },
    merchant: party(sale.merchant_id),
    ...evidenceOf(receipt),
    creator: sale.creator_id === null ? null : party(sale.creator_id),
    offer: sale.offer_id === null ? null : { id: sale.offer_id, title: offerTitle },
    decision: receipt.decision,
    formerDecisions: formerReceipts.map(({ decidedAt, eventId, receipt: { decision } }) => ({
      decidedAt,
      eventId,
      decision,
    })),
    ...outcome,
  }
}

/** Another merchant's click is on the receipt but not part of this sale. */
function evidenceOf({ facts }: SaleReceipt): Pick<SaleExplanation, 'click' | 'coupon' | 'source' | 'link'> {
  const attribution = attributionOf(facts)
  const ofMerchant = facts.click?.link.merchant_id === facts.reporting_merchant_id
  return {
    click: ofMerchant ? facts.click : null,
    coupon: facts.coupons?.find(({ code }) => code === attribution?.code) ?? null,
    source: orderSource(facts),
    link: attribution?.link ?? null,
  }
}

/** A sale with the names of what it is about, for a list. */
export interface NamedSale extends SaleWithSlug {
  /** `null`, like the creator, unless the order named a link of this merchant. */
  offer: { id: string; title: string } | null
  creator: { id: string; displayName: string } | null
  store: { id: string; shopDomain: string }
}

export async function withNames(platform: Platform, sales: readonly SaleWithSlug[]): Promise<NamedSale[]> {
  const db = platform.database.reader
  const ids = (of: (sale: SaleWithSlug) => string | null) => [
    ...new Set(sales.map(of).filter((id) => id !== null)),
  ]
  const offers = await offerRecords(
    platform,
    db,
    ids((sale) => sale.offer_id),
  )
  const people = await peopleOf(
    db,
    sales.map((sale) => sale.creator_id),
  )
  const domains = await shopDomainsOf(
    db,
    ids((sale) => sale.store_id),
  )
  return sales.map((sale) => ({
    ...sale,
    offer:
      sale.offer_id === null ? null : { id: sale.offer_id, title: offers.get(sale.offer_id)?.title ?? '' },
    creator:
      sale.creator_id === null
        ? null
        : { id: sale.creator_id, displayName: people.get(sale.creator_id)?.display_name ?? '' },
    store: { id: sale.store_id, shopDomain: domains.get(sale.store_id) ?? '' },
  }))
}

/** A sale for its merchant or creator: names only, without contact or payment details. */
export interface PartyExplanation {
  sale: NamedSale
  receipt: SaleReceipt
  merchant: { id: string; displayName: string }
  formerReceipts: FormerReceipt[]
  outcome: SaleOutcome
}

/** Explains a sale in the caller's scope to its merchant or creator; `null` when there is none. */
export async function explainSaleToParty(
  platform: Platform,
  scope: SaleScope,
  saleId: string,
): Promise<PartyExplanation | null> {
  const db = platform.database.reader
  const found = await findSale(db, scope, saleId)
  if (!found) return null
  const [sale] = (await withNames(platform, [found])) as [NamedSale]
  const { people, offerTitle: _, ...explanation } = await loadExplanation(platform, db, sale)
  const merchant = { id: sale.merchant_id, displayName: people.get(sale.merchant_id)?.display_name ?? '' }
  return { sale, merchant, ...explanation }
}

/** An earlier decision of a sale. Times in epoch ms. */
export interface FormerReceipt {
  decidedAt: number
  eventId: string
  receipt: SaleReceipt
}

async function loadExplanation(platform: Platform, db: Queries, sale: SaleWithSlug) {
  const offers = await offerRecords(platform, db, sale.offer_id ? [sale.offer_id] : [])
  return {
    receipt: JSON.parse(sale.receipt) as SaleReceipt,
    formerReceipts: await formerReceiptsOf(db, sale),
    people: await peopleOf(db, [sale.merchant_id, sale.creator_id]),
    offerTitle: sale.offer_id === null ? null : (offers.get(sale.offer_id)?.title ?? null),
    outcome: { cycle: await cycleOfSale(db, sale), payouts: await payoutsOfSale(db, sale) },
  }
}

/** At most one: of an order that was first reported as unpaid. */
async function formerReceiptsOf(db: Queries, sale: SaleRow): Promise<FormerReceipt[]> {
  if (sale.decided_at === null) return []
  const former = (await formerDecisions(db, [sale.id])).get(sale.id)
  if (!former) return []
  const receipt = JSON.parse(former.receipt) as SaleReceipt
  return [{ decidedAt: former.decided_at, eventId: former.event_id, receipt }]
}

/** The billing and payouts of a sale. Amounts in paisa, times in epoch ms. */
export interface SaleOutcome {
  /** `null` for a rejected sale. */
  cycle: SaleCycle | null
  /** The payouts that carried the creator's share of that cycle, oldest first, including failed ones. */
  payouts: PayoutRow[]
}

export interface SaleCycle extends CycleRow {
  /** The error of the last attempt to create the invoice; `null` once it exists. */
  invoiceProblem: string | null
  /** The creator's commission in the whole cycle, which the payout carries. */
  creatorShare: Paisa
  releasedAt: number | null
}

async function cycleOfSale(db: Queries, sale: SaleRow): Promise<SaleCycle | null> {
  const cycle = sale.billing_cycle_id ? await getCycle(db, sale.billing_cycle_id) : undefined
  if (!cycle) return null
  const attempt = (await listAttempts(db, 'invoice', cycle.id)).at(-1)
  const share = (await cycleShares(db, cycle.id)).find((row) => row.creator_id === sale.creator_id)
  return {
    ...cycle,
    invoiceProblem: attempt && attempt.state !== 'created' ? attempt.detail : null,
    creatorShare: share?.commission ?? 0,
    releasedAt: share?.released_at ?? null,
  }
}

async function payoutsOfSale(db: Queries, sale: SaleRow): Promise<PayoutRow[]> {
  if (sale.billing_cycle_id === null || sale.creator_id === null) return []
  return sharePayouts(db, sale.billing_cycle_id, sale.creator_id)
}
