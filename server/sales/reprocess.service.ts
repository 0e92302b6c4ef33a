import type { Paisa } from '../../shared/money.ts'
import { clicksPrunedBefore } from '../clicks/click-retention.service.ts'
import { countStoredEvents, type StoredEvent, storedEvents } from '../inbox/events.service.ts'
import type { Queries } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { MalformedOrder } from '../shopify/fields.ts'
import { isOrderPaid, type OrderFacts, readOrderFacts } from '../shopify/order-facts.ts'
import { getStoresById } from '../stores/stores.service.ts'
import { decideSale, readReceipt, type SaleDecision, type SaleReceipt } from './accept-sale.rule.ts'
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
import {
  type DecidedSaleRow,
  type FormerSaleRow,
  findRecorded,
  formerSalesById,
  salesById,
} from './sales.store.ts'

/** How an order is read and decided. Tests pass a changed rule. */
export interface SaleRule {
  read(rawBody: string, trackingParameter: string): OrderFacts
  decide(facts: SaleFacts): SaleDecision
}

export const TODAYS_RULE: SaleRule = { read: readOrderFacts, decide: decideSale }

/** An event that would have another result today. Amounts in paisa. */
export interface Difference {
  eventId: string
  receivedAt: number
  storeId: string
  merchantId: string
  saleId: string | null
  /** `null` if the body was never readable. */
  orderId: string | null
  orderName: string | null
  before: Verdict
  after: Verdict
  /** `receipt`: the raw body was deleted, so only the rule was replayed on the stored facts. */
  from: 'body' | 'receipt'
  /** Facts that were not recorded; today's values replace them. */
  lost: LostFact[]
}

export interface ReprocessCounts {
  events: number
  /** Decided again. */
  judged: number
  different: number
  /** Repeated deliveries of an order; they make no sale. */
  repeats: number
  /** The raw body was deleted after its retention time. */
  bodiesGone: number
  /** The body was never readable. */
  unreadable: number
  otherTopics: number
  /** A delivery id with two different bodies: set aside for an operator. */
  conflicting: number
  /** Not processed yet. */
  waiting: number
  unknownStores: number
  /** Not the event that intake sealed: added or changed in the database. */
  forged: number
  /** Decided with today's value for a fact that was not recorded. */
  uncertain: number
}

/** What a party is billed or earns: as recorded, and by today's rule. Counts differing events only. */
export interface ReprocessTotals {
  before: { commission: Paisa; platformFee: Paisa }
  after: { commission: Paisa; platformFee: Paisa }
}

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
  options: ReprocessOptions,
): Promise<ReprocessReport> {
  const db = platform.database.reader
  const filter = {
    source: 'store' as const,
    scopes: options.storeIds ?? null,
    since: options.since ?? null,
  }
  const all = await countStoredEvents(db, filter)
  const run = new Reprocessing(platform, options)
  for await (const events of storedEvents(platform, db, filter)) {
    await run.process(events)
    options.onProgress?.(run.report.counts.events, Math.max(all, run.report.counts.events))
  }
  return run.report
}

function saleIn(result: string | null): string | undefined {
  const { sale_id } = JSON.parse(result ?? '{}') as { sale_id?: string }
  return sale_id
}

/** An event to decide again. */
interface Candidate {
  event: StoredEvent
  merchantId: string
  sale: DecidedSaleRow | null
  receipt: SaleReceipt | null
  /** `null`: the raw body was deleted. */
  order: OrderFacts | { malformed: string } | null
}

class Reprocessing {
  readonly report: ReprocessReport = {
    counts: {
      events: 0,
      judged: 0,
      different: 0,
      repeats: 0,
      bodiesGone: 0,
      unreadable: 0,
      otherTopics: 0,
      conflicting: 0,
      waiting: 0,
      unknownStores: 0,
      forged: 0,
      uncertain: 0,
    },
    merchants: new Map(),
    creators: new Map(),
  }
  readonly #platform: ReadPlatform
  readonly #options: ReprocessOptions
  readonly #rule: SaleRule
  /** Keys of orders that would newly make a sale. Another delivery of them is a repeat. */
  readonly #fresh = new Set<string>()

  /** Clicks with smaller ids may have been deleted. */
  #pruned = NIL_ID

  constructor(platform: ReadPlatform, options: ReprocessOptions) {
    this.#platform = platform
    this.#options = options
    this.#rule = options.rule ?? TODAYS_RULE
  }

  async process(events: readonly StoredEvent[]): Promise<void> {
    this.report.counts.events += events.length
    const candidates = await this.#withoutRepeats(await this.#readAll(events))
    const readable = candidates.filter((one): one is Candidate & { order: OrderFacts } => isOrder(one.order))
    const today = await loadFacts(this.#platform, this.#db, readable)
    // Read after the clicks, so that it covers clicks deleted in between.
    this.#pruned = await clicksPrunedBefore(this.#db)
    const factsOf = new Map<Candidate, SaleFacts>(
      readable.map((one, index) => [one, today[index] as SaleFacts]),
    )
    for (const one of candidates) this.#compare(one, factsOf.get(one) ?? null)
  }

  get #db(): Queries {
    return this.#platform.database.reader
  }

  async #readAll(events: readonly StoredEvent[]): Promise<Candidate[]> {
    const stores = await getStoresById(this.#db, [...new Set(events.map((event) => event.scope))])
    const ids = events.flatMap(({ result }) => saleIn(result) ?? [])
    const former = (await formerSalesById(this.#db, ids)).flatMap((row) => formerSaleOf(row) ?? [])
    const made = new Map(
      [...(await salesById(this.#db, ids)), ...former].map((sale) => [sale.event_id, sale]),
    )
    return events.flatMap((event) => {
      const merchantId = stores.get(event.scope)?.merchant_id
      const skipped = this.#skipReason(event, merchantId)
      if (skipped !== null) {
        this.report.counts[skipped] += 1
        return []
      }
      const sale = made.get(event.id) ?? null
      return {
        event,
        merchantId: merchantId ?? '',
        sale,
        receipt: sale && readReceipt(sale.receipt),
        order: this.#readOrder(event),
      }
    })
  }

  #skipReason(event: StoredEvent, merchantId: string | undefined): keyof ReprocessCounts | null {
    if (event.problem !== null) return 'forged'
    if (event.conflict_hash !== '') return 'conflicting'
    if (!isOrderPaid(event.topic)) return 'otherTopics'
    if (event.state === 'pending') return 'waiting'
    return merchantId === undefined ? 'unknownStores' : null
  }

  #readOrder(event: StoredEvent): Candidate['order'] {
    if (event.text === null) return null
    try {
      return this.#rule.read(event.text, this.#platform.config.TRACKING_PARAMETER)
    } catch (error) {
      if (error instanceof MalformedOrder) return { malformed: error.reason }
      throw error
    }
  }

  async #withoutRepeats(candidates: readonly Candidate[]): Promise<Candidate[]> {
    const orders = candidates.flatMap(({ event, sale, order }) =>
      sale === null && isOrder(order) ? [{ store_id: event.scope, order_id: order.order_id }] : [],
    )
    const recorded = new Set(
      (await findRecorded(this.#db, orders)).map((row) => keyOf(row.store_id, row.order_id)),
    )
    return candidates.filter(({ event, sale, order }) => {
      if (sale !== null || !isOrder(order)) return true
      const key = keyOf(event.scope, order.order_id)
      const repeat = recorded.has(key) || this.#fresh.has(key)
      if (repeat) this.report.counts.repeats += 1
      else this.#fresh.add(key)
      return !repeat
    })
  }

  #compare(one: Candidate, today: SaleFacts | null): void {
    const { counts } = this.report
    if (one.order === null) counts.bodiesGone += 1
    const before = one.sale ? recordedVerdict(one.sale) : noSale(one.event.reason ?? 'no sale')
    const again = this.#decideAgain(one, today)
    if (again === null) {
      if (one.order !== null) counts.unreadable += 1
      return
    }
    counts.judged += 1
    if (again.lost.length > 0) counts.uncertain += 1
    if (isDifferent(before, again.after)) this.#report(one, before, again)
  }

  /** `null` without a readable body and without a receipt. */
  #decideAgain(one: Candidate, today: SaleFacts | null): { after: Verdict; lost: LostFact[] } | null {
    if (one.order === null && one.receipt) {
      return { after: verdictOf(this.#rule.decide(one.receipt.facts), one.receipt.facts), lost: [] }
    }
    if (today) {
      const { facts, lost } = factsOfTheTime(today, one.receipt?.facts ?? null, this.#pruned)
      return { after: verdictOf(this.#rule.decide(facts), facts), lost }
    }
    if (one.sale && one.order && !isOrder(one.order)) {
      return { after: noSale(`malformed: ${one.order.malformed}`), lost: [] }
    }
    return null
  }

  #report(one: Candidate, before: Verdict, { after, lost }: { after: Verdict; lost: LostFact[] }): void {
    const { event, sale, order } = one
    const merchantId = sale?.merchant_id ?? one.merchantId
    this.report.counts.different += 1
    addTo(this.report.merchants, merchantId, before, after)
    for (const creatorId of new Set([before.creatorId, after.creatorId])) {
      if (creatorId === null) continue
      const nothing = noSale('')
      const share = (verdict: Verdict) => (verdict.creatorId === creatorId ? verdict : nothing)
      addTo(this.report.creators, creatorId, share(before), share(after))
    }
    this.#options.onDifference({
      eventId: event.id,
      receivedAt: event.received_at,
      storeId: event.scope,
      merchantId,
      saleId: sale?.id ?? null,
      orderId: isOrder(order) ? order.order_id : (sale?.order_id ?? null),
      orderName: isOrder(order) ? order.order_name : (sale?.order_name ?? null),
      before,
      after,
      from: order === null ? 'receipt' : 'body',
      lost,
    })
  }
}

function isOrder(order: Candidate['order']): order is OrderFacts {
  return order !== null && !('malformed' in order)
}

function keyOf(storeId: string, orderId: string): string {
  return `${storeId}\n${orderId}`
}

/** A sale by its former decision; `null` if its receipt is unreadable. */
function formerSaleOf(row: FormerSaleRow): DecidedSaleRow | null {
  const receipt = readReceipt(row.receipt)
  if (receipt === null) return null
  const { facts, decision } = receipt
  return {
    ...row,
    order_name: facts.order.order_name,
    acceptance_status: decision.acceptance_status,
    rejection_reason: decision.rejection_reason,
    creator_id: verdictOf(decision, facts).creatorId,
    net_amount: decision.net_amount,
    commission_rate: decision.commission_rate,
    commission: decision.commission,
    platform_fee: decision.platform_fee,
  }
}

function recordedVerdict(sale: DecidedSaleRow): Verdict {
  return {
    verdict: sale.acceptance_status,
    reason: sale.rejection_reason,
    creatorId: sale.creator_id,
    netAmount: sale.net_amount,
    commissionRate: sale.commission_rate,
    commission: sale.commission,
    platformFee: sale.platform_fee,
  }
}

function addTo(totals: Map<string, ReprocessTotals>, id: string, before: Verdict, after: Verdict): void {
  const nothing = { commission: 0, platformFee: 0 }
  const sum = totals.get(id) ?? { before: nothing, after: nothing }
  const plus = (one: typeof nothing, other: typeof nothing) => ({
    commission: one.commission + other.commission,
    platformFee: one.platformFee + other.platformFee,
  })
  totals.set(id, { before: plus(sum.before, before), after: plus(sum.after, after) })
}
