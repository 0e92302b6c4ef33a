import type { Paisa } from '../../shared/money.ts'
import { clicksPrunedBefore } from '../clicks/click-retention.service.ts'
import { countStoredEvents, idInResult, type StoredEvent, storedEvents } from '../inbox/events.service.ts'
import type { Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { MalformedOrder } from '../shopify/fields.ts'
import { type OrderFacts, readOrderFacts } from '../shopify/order-facts.ts'
import { isOrderPaid } from '../shopify/topics.ts'
import { getStoresById } from '../stores/stores.service.ts'
import { attributionOf, decideSale, readReceipt, type SaleDecision } from './accept-sale.rule.ts'
import {
  factsOfTheTime,
  isDifferent,
  type LostFact,
  noSale,
  type Verdict,
  verdictOf,
} from './reprocess.rule.ts'
import type { SaleFacts } from './sale-facts.ts'
import { loadFacts } from './sales.service.ts'
import { findRecorded, formerDecisions, type OrderKey, salesById } from './sales.store.ts'

/** How an order is read and decided. Tests pass a changed rule. */
export interface SaleRule {
  read(rawBody: string, trackingParameter: string, feeTitles?: readonly string[]): OrderFacts
  decide(facts: SaleFacts): SaleDecision
}

export const TODAYS_RULE: SaleRule = { read: readOrderFacts, decide: decideSale }

/** An event that would have another result today. Amounts in paisa. */
export type Difference = ReturnType<typeof differenceOf>

const NO_COUNTS = {
  events: 0,
  /** Decided again. */
  judged: 0,
  different: 0,
  /** Repeated deliveries of an order; they make no sale. */
  repeats: 0,
  /** The raw body was deleted after its retention time. */
  bodies_gone: 0,
  /** The body was never readable. */
  unreadable: 0,
  other_topics: 0,
  /** A delivery id with two different bodies: set aside for an operator. */
  conflicting: 0,
  /** Not processed yet. */
  waiting: 0,
  unknown_stores: 0,
  /** Not the event that intake sealed: added or changed in the database. */
  forged: 0,
  /** Decided with today's value for a fact that was not recorded. */
  uncertain: 0,
}

export type ReprocessCounts = typeof NO_COUNTS

/** What a party is billed or earns: as recorded, and by today's rule. Counts differing events only. */
export type ReprocessTotals = Record<'before' | 'after', { commission: Paisa; platform_fee: Paisa }>

export interface ReprocessReport {
  counts: ReprocessCounts
  /** By user id. */
  merchants: Map<string, ReprocessTotals>
  creators: Map<string, ReprocessTotals>
}

export interface ReprocessOptions {
  /** Epoch ms, compared with the time of receipt. */
  since?: number | null
  storeIds?: readonly string[] | null
  rule?: SaleRule
  onDifference(difference: Difference): void
  /** Called with the number of processed events and the total. */
  onProgress?(done: number, all: number): void
}

type ReadPlatform = Pick<Platform, 'config' | 'database' | 'keys'>

/**
 * Replays the stored orders with today's reading and rule, each with its recorded facts, and reports the differences. Writes nothing.
 * Memory holds one batch of events and the keys of all orders that would newly make a sale.
 */
export async function reprocessOrders(
  platform: ReadPlatform,
  { since = null, storeIds = null, rule = TODAYS_RULE, onDifference, onProgress }: ReprocessOptions,
): Promise<ReprocessReport> {
  const db = platform.database.reader
  const filter = { source: 'store' as const, scopes: storeIds, since }
  const all = await countStoredEvents(db, filter)
  const report: ReprocessReport = { counts: { ...NO_COUNTS }, merchants: new Map(), creators: new Map() }
  const { counts } = report
  const fresh = new Set<string>()
  for await (const events of storedEvents(platform, db, filter)) {
    counts.events += events.length
    const read = await readCandidates(platform, rule, counts, events)
    const candidates = await withoutRepeats(db, counts, fresh, read)
    const readable = candidates.flatMap(({ merchantId, order, sale }) =>
      isOrder(order) ? { merchantId, order, earlier: sale?.facts?.order.lines ?? [] } : [],
    )
    const facts = (await loadFacts(platform, db, readable))[Symbol.iterator]()
    // Read after the clicks, so that it covers clicks deleted in between.
    const pruned = await clicksPrunedBefore(db)
    for (const one of candidates) {
      const today = isOrder(one.order) ? (facts.next().value ?? null) : null
      const again = decideAgain(one, rule, today, pruned)
      if (one.order === null) counts.bodies_gone += 1
      else if (again === null) counts.unreadable += 1
      if (again === null) continue
      counts.judged += 1
      if (again.lost.length > 0) counts.uncertain += 1
      const before = one.sale?.verdict ?? noSale(one.event.reason ?? 'no sale')
      if (!isDifferent(before, again.after)) continue
      const difference = differenceOf(one, before, again)
      addDifference(report, difference)
      onDifference(difference)
    }
    onProgress?.(counts.events, Math.max(all, counts.events))
  }
  return report
}

/** A recorded decision about a sale, the current one or the former. */
interface Recorded {
  id: string
  merchant_id: string
  order_id: string
  order_name: string | null
  verdict: Verdict
  /** `null` if the receipt is unreadable. */
  facts: SaleFacts | null
}

/** An event to decide again. */
interface Candidate {
  event: StoredEvent
  merchantId: string
  /** The decision that rests on it. */
  sale: Recorded | null
  /** `null`: the raw body was deleted. */
  order: OrderFacts | MalformedOrder | null
}

async function readCandidates(
  { config, database }: ReadPlatform,
  rule: SaleRule,
  counts: ReprocessCounts,
  events: readonly StoredEvent[],
): Promise<Candidate[]> {
  const db = database.reader
  const stores = await getStoresById(db, [...new Set(events.map((event) => event.scope))])
  const recorded = await recordedBy(db, events)
  return events.flatMap((event) => {
    const merchantId = stores.get(event.scope)?.merchant_id
    const skipped = skipReason(event, merchantId)
    if (skipped !== null) counts[skipped] += 1
    if (skipped !== null || merchantId === undefined) return []
    return {
      event,
      merchantId,
      sale: recorded.get(event.id) ?? null,
      order: event.text === null ? null : readOrder(rule, event.text, config),
    }
  })
}

/** The decisions that rest on these events, by event id. A former decision with an unreadable receipt is missing. */
async function recordedBy(db: Queries, events: readonly StoredEvent[]): Promise<Map<string, Recorded>> {
  const ids = events.flatMap((event) => idInResult(event, 'sale_id') ?? [])
  const sales = new Map((await salesById(db, ids)).map((sale) => [sale.id, sale]))
  const recorded = new Map<string, Recorded>()
  for (const { event_id, sale_id, receipt } of await formerDecisions(db, ids)) {
    const former = readReceipt(receipt)
    const sale = sales.get(sale_id)
    if (!former || !sale) continue
    const { facts, decision } = former
    const verdict = verdictOf(decision, attributionOf(facts)?.link.creator_id ?? null)
    recorded.set(event_id, { ...sale, order_name: facts.order.order_name, verdict, facts })
  }
  for (const sale of sales.values()) {
    const facts = readReceipt(sale.receipt)?.facts ?? null
    recorded.set(sale.event_id, { ...sale, verdict: verdictOf(sale, sale.creator_id), facts })
  }
  return recorded
}

function skipReason(event: StoredEvent, merchantId: string | undefined): keyof ReprocessCounts | null {
  if (event.problem !== null) return 'forged'
  if (event.conflict_hash !== '') return 'conflicting'
  if (!isOrderPaid(event.topic)) return 'other_topics'
  if (event.state === 'pending') return 'waiting'
  return merchantId === undefined ? 'unknown_stores' : null
}

function readOrder(
  rule: SaleRule,
  body: string,
  { TRACKING_PARAMETER, FEE_TITLES }: Platform['config'],
): OrderFacts | MalformedOrder {
  try {
    return rule.read(body, TRACKING_PARAMETER, FEE_TITLES)
  } catch (error) {
    if (error instanceof MalformedOrder) return error
    throw error
  }
}

function isOrder(order: Candidate['order']): order is OrderFacts {
  return order !== null && !(order instanceof MalformedOrder)
}

/** `fresh`: keys of orders that would newly make a sale. Another delivery of them is a repeat. */
async function withoutRepeats(
  db: Queries,
  counts: ReprocessCounts,
  fresh: Set<string>,
  candidates: readonly Candidate[],
): Promise<Candidate[]> {
  const keyOf = ({ store_id, order_id }: OrderKey) => `${store_id}\n${order_id}`
  const newOrder = ({ event, sale, order }: Candidate) =>
    sale === null && isOrder(order) ? { store_id: event.scope, order_id: order.order_id } : null
  const orders = candidates.flatMap((one) => newOrder(one) ?? [])
  const recorded = new Set((await findRecorded(db, orders)).map(keyOf))
  return candidates.filter((one) => {
    const order = newOrder(one)
    if (!order) return true
    const key = keyOf(order)
    if (recorded.has(key) || fresh.has(key)) {
      counts.repeats += 1
      return false
    }
    fresh.add(key)
    return true
  })
}

interface DecidedAgain {
  after: Verdict
  /** Facts that were not recorded; today's values replace them. */
  lost: LostFact[]
}

/** `null` without a readable body and without a receipt. */
function decideAgain(
  { sale, order }: Candidate,
  rule: SaleRule,
  today: SaleFacts | null,
  pruned: string,
): DecidedAgain | null {
  if (sale && order instanceof MalformedOrder)
    return { after: noSale(`malformed: ${order.reason}`), lost: [] }
  const then = sale?.facts ?? null
  const known = today
    ? factsOfTheTime(today, then, pruned)
    : order === null && then && { facts: withoutVersion(then), lost: [] }
  if (!known) return null
  const { facts, lost } = known
  return { after: verdictOf(rule.decide(facts), attributionOf(facts)?.link.creator_id ?? null), lost }
}

/** Facts of any version, for today's rule. */
function withoutVersion({ rule_version: _, ...facts }: SaleFacts): SaleFacts {
  return facts
}

function differenceOf(one: Candidate, before: Verdict, { after, lost }: DecidedAgain) {
  const { event, sale, order } = one
  const named = isOrder(order) ? order : sale
  return {
    event_id: event.id,
    received_at: event.received_at,
    store_id: event.scope,
    merchant_id: sale?.merchant_id ?? one.merchantId,
    sale_id: sale?.id ?? null,
    /** `null` if the body was never readable. */
    order_id: named?.order_id ?? null,
    order_name: named?.order_name ?? null,
    before,
    after,
    /** `receipt`: the raw body was deleted, so only the rule was replayed on the stored facts. */
    from: order === null ? ('receipt' as const) : ('body' as const),
    lost,
  }
}

function addDifference(report: ReprocessReport, { merchant_id, before, after }: Difference): void {
  report.counts.different += 1
  addTo(report.merchants, merchant_id, before, after)
  for (const creatorId of new Set([before.creator_id, after.creator_id])) {
    if (creatorId === null) continue
    const share = (verdict: Verdict) => (verdict.creator_id === creatorId ? verdict : noSale(''))
    addTo(report.creators, creatorId, share(before), share(after))
  }
}

function addTo(totals: Map<string, ReprocessTotals>, id: string, before: Verdict, after: Verdict): void {
  const zero = () => ({ commission: 0, platform_fee: 0 })
  const sum = totals.get(id) ?? { before: zero(), after: zero() }
  totals.set(id, sum)
  for (const field of ['commission', 'platform_fee'] as const) {
    sum.before[field] += before[field]
    sum.after[field] += after[field]
  }
}
