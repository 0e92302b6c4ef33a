import { type EventOrigin, originsOf } from '../inbox/operator-deliveries.service.ts'
import { unreadableOrders } from '../inbox/set-aside-flags.service.ts'
import { offerRecords } from '../offers/offers.service.ts'
import type { Queries } from '../platform/database.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { shopDomainsOf, storeIdsOf } from '../stores/store-names.service.ts'
import { displayNamesOf, emailsOf } from '../users/users.service.ts'
import type { SaleDecision } from './accept-sale.rule.ts'
import type { SaleClick } from './sale-facts.ts'
import { outcomeOfSale, type SaleOutcome } from './sale-outcome.service.ts'
import { formerDecisionsOf, type SaleReceipt } from './sales.service.ts'
import { findSale, findSalesByOrder, type SaleWithSlug } from './sales.store.ts'

/** A sale by which an operator's word for an order can be meant. */
export interface OrderCandidate {
  saleId: string
  orderId: string
  orderName: string | null
  storeId: string
  shopDomain: string | null
  acceptanceStatus: 'accepted' | 'rejected'
  /** Epoch ms. */
  createdAt: number
}

/**
 * The sales that `order` can mean: a sale's id, the store's order id, or the order's name with or without its `#`. An
 * id is preferred to a name that reads the same. `store` (id or host name) narrows it down. Refuses with `not_found`
 * when there is none.
 */
export async function findOrder(
  platform: Platform,
  order: string,
  store: string | null,
): Promise<OrderCandidate[]> {
  const db = platform.database.reader
  const storeIds = store === null ? null : await storeIdsOf(db, store)
  if (storeIds?.length === 0) throw new Refusal('not_found', `There is no store ${store}.`)
  const sales = await salesMeant(db, order.trim(), storeIds)
  if (sales.length === 0) throw new Refusal('not_found', `There is no sale of an order ${order}.`)
  const domains = await shopDomainsOf(
    db,
    sales.map((sale) => sale.store_id),
  )
  return sales.map((sale) => ({
    saleId: sale.id,
    orderId: sale.order_id,
    orderName: sale.order_name,
    storeId: sale.store_id,
    shopDomain: domains.get(sale.store_id) ?? null,
    acceptanceStatus: sale.acceptance_status,
    createdAt: sale.created_at,
  }))
}

async function salesMeant(db: Queries, order: string, storeIds: string[] | null): Promise<SaleWithSlug[]> {
  const sale = isId(order.toLowerCase()) ? await findSale(db, 'all', order.toLowerCase()) : undefined
  if (sale) return storeIds?.includes(sale.store_id) === false ? [] : [sale]
  const byId = await findSalesByOrder(db, { id: order }, storeIds)
  if (byId.length > 0) return byId
  const named = await findSalesByOrder(db, { name: order }, storeIds)
  return named.length > 0 || order.startsWith('#')
    ? named
    : findSalesByOrder(db, { name: `#${order}` }, storeIds)
}

/** A signed order that was set aside, so that no sale was decided. Times in epoch ms. */
export interface SetAsideOrder {
  eventId: string
  orderId: string | null
  orderName: string | null
  storeId: string
  shopDomain: string | null
  reason: string
  receivedAt: number
}

/**
 * Orders set aside that `order` can mean: an order id, or a name with or without its `#`, as far as those could be read. `store` (id or
 * host name) narrows it down. Newest first.
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
  return events.map((event) => ({
    eventId: event.id,
    orderId: event.order_id,
    orderName: event.order_name,
    storeId: event.scope,
    shopDomain: domains.get(event.scope) ?? null,
    reason: event.reason ?? '',
    receivedAt: event.received_at,
  }))
}

interface Party {
  id: string
  displayName: string | null
  email: string | null
}

/** All that led to a sale and has come of it. Amounts in paisa, rates in basis points, times in epoch ms. */
export interface SaleExplanation extends SaleOutcome {
  saleId: string
  eventId: string
  /** Who sent the order: the store, or an operator in its name. */
  origin: EventOrigin
  orderId: string
  orderName: string | null
  orderedAt: number
  /** When the service decided. */
  decidedAt: number
  store: { id: string; shopDomain: string | null }
  merchant: Party
  /** The click, its link and the terms locked at approval; `null` when the order led to no link of this merchant's. */
  click: SaleClick | null
  creator: Party | null
  offer: { id: string; title: string | null } | null
  decision: SaleDecision
  /** Former decisions with their events, oldest first; times in epoch ms. */
  formerDecisions: { decidedAt: number; eventId: string; decision: SaleDecision }[]
}

/** Tells the story of one sale. Refuses with `not_found`. */
export async function explainSale(platform: Platform, saleId: string): Promise<SaleExplanation> {
  const db = platform.database.reader
  const sale = await findSale(db, 'all', saleId)
  if (!sale) throw new Refusal('not_found', 'There is no such sale.')
  const { facts, decision } = JSON.parse(sale.receipt) as SaleReceipt
  const party = await partiesOf(db, [sale.merchant_id, sale.creator_id])
  const domains = await shopDomainsOf(db, [sale.store_id])
  const origins = await originsOf(db, [{ id: sale.event_id, source: 'store' }])
  const offers = await offerRecords(platform, db, sale.offer_id ? [sale.offer_id] : [])
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
    // The row leaves out another merchant's click, and so does the story.
    click: sale.click_id === null ? null : facts.click,
    creator: sale.creator_id === null ? null : party(sale.creator_id),
    offer:
      sale.offer_id === null ? null : { id: sale.offer_id, title: offers.get(sale.offer_id)?.title ?? null },
    decision,
    formerDecisions: (await formerDecisionsOf(db, sale)).map((former) => ({
      decidedAt: former.decided_at,
      eventId: former.event_id,
      decision: (JSON.parse(former.receipt) as SaleReceipt).decision,
    })),
    ...(await outcomeOfSale(db, sale)),
  }
}

async function partiesOf(db: Queries, ids: readonly (string | null)[]): Promise<(id: string) => Party> {
  const known = ids.filter((id) => id !== null)
  const names = await displayNamesOf(db, known)
  const emails = await emailsOf(db, known)
  return (id) => ({ id, displayName: names.get(id) ?? null, email: emails.get(id) ?? null })
}
