import type { Paisa } from '../../shared/money.ts'
import { clicksPrunedBefore } from '../clicks/click-retention.service.ts'
import { countStoredEvents, type StoredEvent, storedEvents } from '../inbox/stored-events.service.ts'
import type { Queries } from '../platform/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { MalformedOrder } from '../shopify/malformed-order.ts'
import { type OrderFacts, readOrderFacts } from '../shopify/order-facts.ts'
import { isOrderPaid } from '../shopify/topic.ts'
import { merchantsOfStores } from '../stores/store-owners.service.ts'
import { decideSale, type SaleDecision } from './accept-sale.rule.ts'
import {
  factsOfTheTime,
  isDifferent,
  type LostFact,
  noSale,
  type Verdict,
  verdictOf,
} from './reprocess.rule.ts'
import { type DecidedSaleRow, type FormerSaleRow, formerSalesById, salesById } from './reprocess.store.ts'
import type { SaleFacts } from './sale-facts.ts'
import { loadFacts, type SaleReceipt } from './sales.service.ts'
import { findRecorded } from './sales.store.ts'

/** How an order is read and judged; a test puts a changed one in its place. */
export interface SaleRule {
  read(rawBody: string, trackingParameter: string): OrderFacts
  decide(facts: SaleFacts): SaleDecision
}

export const TODAYS_RULE: SaleRule = { read: readOrderFacts, decide: decideSale }

/** An event of which today's reading or rule would make something else. Amounts in paisa. */
export interface Difference {
  eventId: string
  receivedAt: number
  storeId: string
  merchantId: string
  saleId: string | null
  /** `null` when neither then nor today the body can be read. */
  orderId: string | null
  orderName: string | null
  before: Verdict
  after: Verdict
  /** `receipt`: the raw body is gone, so that only the rule was run again, over the facts on the receipt. */
  from: 'body' | 'receipt'
  /** Facts of the time that are not known any more; today's stand in for them. */
  lost: LostFact[]
}

export interface ReprocessCounts {
  events: number
  /** Judged again. */
  judged: number
  different: number
  /** Deliveries of an order that another event reported; they make no sale of their own. */
  repeats: number
  /** Their raw body is past the retention time. */
  bodiesGone: number
  /** Neither then nor today a body that can be read. */
  unreadable: number
  otherTopics: number
  /** The same delivery id with another body: set aside for a person. */
  conflicting: number
  /** Not processed for the first time yet. */
  waiting: number
  unknownStores: number
  /** Judged with a fact of today in place of one that is not known any more. */
  uncertain: number
}

/** What a party is billed or earns by the recorded sales, and by today's rule; over what differs only. */
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
  /** Epoch ms, on the moment of receipt. */
  since?: number | null
  storeIds?: readonly string[] | null
  rule?: SaleRule
  onDifference(difference: Difference): void
  /** Events done, and how many there are in all. */
  onProgress?(done: number, all: number): void
}

type Books = Pick<Platform, 'config' | 'database'>

/**
 * Runs the stored orders through today's reading and rule, each with the facts of its time, and tells what would come out
 * otherwise than what is recorded. It only reads. Events are kept in memory a
 * lot at a time; what grows are the keys of orders that made no sale then and would now.
 */
export async function reprocessOrders(books: Books, options: ReprocessOptions): Promise<ReprocessReport> {
  const db = books.database.reader
  const filter = {
    source: 'store' as const,
    scopes: options.storeIds ?? null,
    since: options.since ?? null,
  }
  const all = await countStoredEvents(db, filter)
  const run = new Run(books, options)
  for await (const events of storedEvents(db, filter)) {
    await run.take(events)
    options.onProgress?.(run.report.counts.events, Math.max(all, run.report.counts.events))
  }
  return run.report
}

/** An event that is to be judged again, as far as it has been read. */
interface Candidate {
  event: StoredEvent
  merchantId: string
  sale: DecidedSaleRow | null
  receipt: SaleReceipt | null
  /** `null`: the raw body is gone. */
  order: OrderFacts | { malformed: string } | null
}

class Run {
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
      uncertain: 0,
    },
    merchants: new Map(),
    creators: new Map(),
  }
  readonly #books: Books
  readonly #options: ReprocessOptions
  readonly #rule: SaleRule
  /** Orders without a sale that today's reading would make one of: a second delivery of theirs would be a repeat. */
  readonly #fresh = new Set<string>()

  /** Clicks with smaller ids may be gone. */
  #pruned = NIL_ID

  constructor(books: Books, options: ReprocessOptions) {
    this.#books = books
    this.#options = options
    this.#rule = options.rule ?? TODAYS_RULE
  }

  async take(events: readonly StoredEvent[]): Promise<void> {
    this.report.counts.events += events.length
    const candidates = await this.#leaveOutRepeats(await this.#readAll(events))
    const readable = candidates.filter((one): one is Candidate & { order: OrderFacts } => isOrder(one.order))
    const today = await loadFacts(this.#books, this.#db, readable)
    // After the clicks: one that is pruned in between is known to be.
    this.#pruned = await clicksPrunedBefore(this.#db)
    const factsOf = new Map<Candidate, SaleFacts>(
      readable.map((one, index) => [one, today[index] as SaleFacts]),
    )
    for (const one of candidates) this.#judge(one, factsOf.get(one) ?? null)
  }

  get #db(): Queries {
    return this.#books.database.reader
  }

  async #readAll(events: readonly StoredEvent[]): Promise<Candidate[]> {
    const merchants = await merchantsOfStores(this.#db, [...new Set(events.map((event) => event.scope))])
    const ids = events.flatMap(({ result }) => (typeof result?.sale_id === 'string' ? [result.sale_id] : []))
    const former = (await formerSalesById(this.#db, ids)).flatMap((row) => formerSaleOf(row) ?? [])
    const made = new Map(
      [...(await salesById(this.#db, ids)), ...former].map((sale) => [sale.event_id, sale]),
    )
    return events.flatMap((event) => {
      const merchantId = merchants.get(event.scope)
      const passedOver = this.#passOver(event, merchantId)
      if (passedOver !== null) {
        this.report.counts[passedOver] += 1
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

  #passOver(event: StoredEvent, merchantId: string | undefined): keyof ReprocessCounts | null {
    if (event.conflicting) return 'conflicting'
    if (!isOrderPaid(event.topic)) return 'otherTopics'
    if (event.state === 'pending') return 'waiting'
    return merchantId === undefined ? 'unknownStores' : null
  }

  #readOrder(event: StoredEvent): Candidate['order'] {
    if (event.rawBody === null) return null
    try {
      return this.#rule.read(event.rawBody.toString('utf8'), this.#books.config.TRACKING_PARAMETER)
    } catch (error) {
      if (error instanceof MalformedOrder) return { malformed: error.reason }
      throw error
    }
  }

  async #leaveOutRepeats(candidates: readonly Candidate[]): Promise<Candidate[]> {
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

  #judge(one: Candidate, today: SaleFacts | null): void {
    const { counts } = this.report
    if (one.order === null) counts.bodiesGone += 1
    const before = one.sale ? recordedVerdict(one.sale) : noSale(one.event.reason ?? 'no sale')
    const judged = this.#judgeAgain(one, today)
    if (judged === null) {
      if (one.order !== null) counts.unreadable += 1
      return
    }
    counts.judged += 1
    if (judged.lost.length > 0) counts.uncertain += 1
    if (isDifferent(before, judged.after)) this.#note(one, before, judged)
  }

  /** `null`: there is nothing to judge, neither a readable body nor the receipt of a sale. */
  #judgeAgain(one: Candidate, today: SaleFacts | null): { after: Verdict; lost: LostFact[] } | null {
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

  #note(one: Candidate, before: Verdict, { after, lost }: { after: Verdict; lost: LostFact[] }): void {
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
      receivedAt: event.receivedAt,
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

/** `null` for one that cannot be read: "ledger verify" names it, and here its facts count as not known any more. */
function readReceipt(text: string): SaleReceipt | null {
  try {
    const receipt = JSON.parse(text) as SaleReceipt
    return receipt.facts?.order && receipt.decision ? receipt : null
  } catch {
    return null
  }
}

/** A sale as its first decision had it; `null` when that cannot be read. */
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
