import type { Paisa } from '../../shared/money.ts'
import { type CycleRow, cycleShares, getCycle } from '../billing/billing.service.ts'
import { offerRecords } from '../offers/offers.service.ts'
import { sharePayouts } from '../payouts/share-payouts.service.ts'
import type { Queries } from '../platform/database.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { listAttempts } from '../processor/attempts.service.ts'
import { shopDomainsOf, storeIdsOf } from '../stores/store-names.service.ts'
import { displayNamesOf, emailsOf } from '../users/users.service.ts'
import type { SaleDecision } from './accept-sale.rule.ts'
import type { SaleClick } from './sale-facts.ts'
import type { SaleReceipt } from './sales.service.ts'
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

interface Party {
  id: string
  displayName: string | null
  email: string | null
}

/** All that led to a sale and has come of it. Amounts in paisa, rates in basis points, times in epoch ms. */
export interface SaleExplanation {
  saleId: string
  eventId: string
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
  cycle: ExplainedCycle | null
  /** How the creator's share of that cycle went out, failed tries included, oldest first. */
  payouts: ExplainedPayout[]
}

export interface ExplainedCycle
  extends Pick<
    CycleRow,
    | 'id'
    | 'state'
    | 'period_start'
    | 'period_end'
    | 'amount_due'
    | 'credit_total'
    | 'processor_invoice_id'
    | 'processor_payment_reference'
    | 'closed_at'
    | 'charged_at'
  > {
  /** What the invoice's latest call came to, as long as the processor has not made it. */
  invoiceProblem: string | null
  /** The creator's commission in the whole cycle, which is what a payout carries. */
  creatorShare: Paisa
  releasedAt: number | null
}

export interface ExplainedPayout {
  id: string
  state: 'pending' | 'submitted' | 'paid' | 'failed'
  amount: Paisa
  processorPayoutId: string | null
  failureReason: string | null
  createdAt: number
  settledAt: number | null
}

/** Tells the story of one sale. Refuses with `not_found`. */
export async function explainSale(platform: Platform, saleId: string): Promise<SaleExplanation> {
  const db = platform.database.reader
  const sale = await findSale(db, 'all', saleId)
  if (!sale) throw new Refusal('not_found', 'There is no such sale.')
  const { facts, decision } = JSON.parse(sale.receipt) as SaleReceipt
  const party = await partiesOf(db, [sale.merchant_id, sale.creator_id])
  const domains = await shopDomainsOf(db, [sale.store_id])
  const offers = await offerRecords(platform, db, sale.offer_id ? [sale.offer_id] : [])
  return {
    saleId: sale.id,
    eventId: sale.event_id,
    orderId: sale.order_id,
    orderName: sale.order_name,
    orderedAt: sale.ordered_at,
    decidedAt: sale.created_at,
    store: { id: sale.store_id, shopDomain: domains.get(sale.store_id) ?? null },
    merchant: party(sale.merchant_id),
    // The row leaves out another merchant's click, and so does the story.
    click: sale.click_id === null ? null : facts.click,
    creator: sale.creator_id === null ? null : party(sale.creator_id),
    offer:
      sale.offer_id === null ? null : { id: sale.offer_id, title: offers.get(sale.offer_id)?.title ?? null },
    decision,
    cycle: await explainCycle(db, sale),
    payouts: await explainPayouts(db, sale),
  }
}

async function partiesOf(db: Queries, ids: readonly (string | null)[]): Promise<(id: string) => Party> {
  const known = ids.filter((id) => id !== null)
  const names = await displayNamesOf(db, known)
  const emails = await emailsOf(db, known)
  return (id) => ({ id, displayName: names.get(id) ?? null, email: emails.get(id) ?? null })
}

async function explainCycle(db: Queries, sale: SaleWithSlug): Promise<ExplainedCycle | null> {
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

async function explainPayouts(db: Queries, sale: SaleWithSlug): Promise<ExplainedPayout[]> {
  if (sale.billing_cycle_id === null || sale.creator_id === null) return []
  return (await sharePayouts(db, sale.billing_cycle_id, sale.creator_id)).map((payout) => ({
    id: payout.id,
    state: payout.state,
    amount: payout.amount,
    processorPayoutId: payout.processor_payout_id,
    failureReason: payout.failure_reason,
    createdAt: payout.created_at,
    settledAt: payout.settled_at,
  }))
}
