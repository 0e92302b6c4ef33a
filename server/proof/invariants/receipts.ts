import { sql } from 'kysely'
import { clicksPrunedBefore } from '../../clicks/click-retention.service.ts'
import { dialectOf, type Queries } from '../../platform/database.ts'
import { isId, NIL_ID } from '../../platform/ids.ts'
import { among } from '../../platform/row-set.ts'
import type { Schema } from '../../platform/schema.ts'
import { decideSale, type SaleDecision } from '../../sales/accept-sale.rule.ts'
import type { SaleReceipt } from '../../sales/sales.service.ts'
import { ALL_PAGES, type Breach, countRows, cutByKey, type Invariant, MOST_BREACHES } from './invariant.ts'

/** Few enough that what a page leaves behind is cleared away young; receipts are kilobytes. */
const PAGE = 250

/** The one check that needs our own code: each stored decision is taken again from its stored facts. */
export const RECEIPTS_REPLAY: Invariant = {
  name: 'receipts-replay',
  statement:
    'Each stored decision, taken again from its stored facts, gives the same verdict, reason and amounts; sale and click are what the facts say.',
  count: (db) => countRows(db, 'sales'),
  cut: (db, parts) => cutByKey(db, 'sales', 'id', parts),
  async breaches(db, pages = ALL_PAGES) {
    const breaches: Breach[] = []
    let after = pages.after
    for (;;) {
      const page = await readPage(db, after, pages.upTo)
      const read = page.map((sale) => ({ sale, receipt: replay(sale.receipt) }))
      const clicks = await clicksSeen(db, read)
      for (const { sale, receipt } of read) {
        const detail = receipt
          ? (differenceOf(sale, receipt) ?? clickDifferenceOf(receipt.facts.click, clicks))
          : 'its receipt cannot be read'
        if (detail) breaches.push({ subject: `sale ${sale.id}`, detail })
      }
      pages.onRows(page.length)
      const last = page.at(-1)
      if (!last || breaches.length >= MOST_BREACHES) return breaches.slice(0, MOST_BREACHES)
      after = last.id
    }
  },
}

type SaleFigures = Awaited<ReturnType<typeof readPage>>[number]

/** With the click that each sale names, which nearly always is the one that its decision looked at. */
function readPage(db: Queries, after: string | null, upTo: string | null) {
  return db
    .selectFrom('sales as sale')
    .leftJoin('clicks as click', 'click.id', 'sale.click_id')
    .select([
      'sale.id',
      'sale.merchant_id',
      'sale.order_id',
      'sale.order_name',
      'sale.offer_id',
      'sale.creator_id',
      'sale.link_id',
      'sale.click_id',
      'sale.ordered_at',
      'sale.acceptance_status',
      'sale.rejection_reason',
      'sale.net_amount',
      'sale.commission_rate',
      'sale.commission',
      'sale.platform_fee',
      'sale.receipt',
      'click.link_id as clicked_link_id',
      'click.created_at as clicked_at',
      'click.tracked as click_tracked',
    ])
    .$if(after !== null, (query) => query.where('sale.id', '>', after ?? ''))
    .$if(upTo !== null, (query) => query.where('sale.id', '<=', upTo ?? ''))
    .orderBy('sale.id')
    .limit(PAGE)
    .execute()
}

type ClickRecord = Pick<Schema['clicks'], 'link_id' | 'created_at' | 'tracked'>

interface Clicks {
  byId: Map<string, ClickRecord>
  /** Clicks with smaller ids may be gone; read after the clicks, so that one pruned in between is known to be. */
  pruned: string
}

interface ReadSale {
  sale: SaleFigures
  receipt: ReplayedReceipt | null
}

/** Every click that a decision of the page looked at, as far as it is there. */
async function clicksSeen(db: Queries, page: readonly ReadSale[]): Promise<Clicks> {
  const byId = new Map<string, ClickRecord>()
  for (const { sale } of page) {
    const { click_id, clicked_link_id, clicked_at, click_tracked } = sale
    if (click_id === null || clicked_link_id === null) continue
    byId.set(click_id, { link_id: clicked_link_id, created_at: clicked_at ?? 0, tracked: click_tracked ?? 0 })
  }
  const missing = page.flatMap(({ receipt }) => receipt?.facts.click?.id ?? []).filter((id) => !byId.has(id))
  if (missing.length === 0) return { byId, pruned: NIL_ID }
  for (const click of await readClicks(db, missing)) byId.set(click.id, click)
  return { byId, pruned: await clicksPrunedBefore(db) }
}

function readClicks(db: Queries, ids: readonly string[]) {
  // Whoever changed a receipt may have left no id there, which PostgreSQL would refuse.
  const known = [...new Set(ids.filter(isId))]
  return db
    .selectFrom('clicks')
    .select(['id', 'link_id', 'created_at', 'tracked'])
    .where(sql<boolean>`id ${among(dialectOf(db), 'uuid', known)}`)
    .execute()
}

/** Of every click that a decision looked at, also one that led to another merchant's link. */
function clickDifferenceOf(seen: SaleReceipt['facts']['click'], { byId, pruned }: Clicks): string | null {
  if (!seen) return null
  const click = byId.get(seen.id)
  if (!click) return seen.id < pruned ? null : `its click ${seen.id} does not exist`
  const same =
    click.link_id === seen.link.id &&
    click.created_at === seen.created_at &&
    (click.tracked === 1) === seen.tracked
  return same ? null : `its click ${seen.id} is not what its receipt says`
}

function differenceOf(sale: SaleFigures, { facts, decision, again }: ReplayedReceipt): string | null {
  const same = again === decision || JSON.stringify(again) === JSON.stringify(decision)
  if (!same && again.rule_version === decision.rule_version)
    return 'the rule decides otherwise from its stored facts'
  // A link of another merchant's is not named on the sale.
  const click = facts.click?.link.merchant_id === facts.reporting_merchant_id ? facts.click : null
  const stored = {
    merchant_id: facts.reporting_merchant_id,
    order_id: facts.order.order_id,
    order_name: facts.order.order_name,
    offer_id: click?.link.offer_id ?? null,
    creator_id: click?.link.creator_id ?? null,
    link_id: click?.link.id ?? null,
    click_id: click?.id ?? null,
    ordered_at: facts.order.created_at,
    acceptance_status: decision.acceptance_status,
    rejection_reason: decision.rejection_reason,
    net_amount: decision.net_amount,
    commission_rate: decision.commission_rate,
    commission: decision.commission,
    platform_fee: decision.platform_fee,
  }
  for (const [column, value] of Object.entries(stored)) {
    if (sale[column as keyof SaleFigures] !== value) return `${column} is not what its receipt says`
  }
  return null
}

/** Where the facts of a receipt end. Inside of a text its quotes would be escaped, so it stands there once. */
const DECISION = ',"decision":{"rule_version":'
const FACTS = '{"facts":'

interface ReplayedReceipt extends SaleReceipt {
  /** The decision taken anew; the very object `decision` when the stored one is the same to the letter. */
  again: SaleDecision
}

/**
 * Reads a receipt and takes its decision again. Most of the text is the decision, of which nothing need be read when it is
 * what the rule says now.
 */
function replay(text: string): ReplayedReceipt | null {
  const end = text.indexOf(DECISION)
  if (text.startsWith(FACTS) && end > 0) {
    const facts = parsed(text.slice(FACTS.length, end)) as SaleReceipt['facts'] | null
    const again = facts?.order ? decided(facts) : null
    if (!facts || !again) return null
    if (text.slice(end) === `,"decision":${JSON.stringify(again)}}`) return { facts, decision: again, again }
  }
  const receipt = parsed(text) as SaleReceipt | null
  if (!receipt?.facts?.order || !receipt.decision) return null
  const again = decided(receipt.facts)
  return again && { ...receipt, again }
}

/** `null` when the rule cannot even read the facts. */
function decided(facts: SaleReceipt['facts']): SaleDecision | null {
  try {
    return decideSale(facts)
  } catch {
    return null
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
