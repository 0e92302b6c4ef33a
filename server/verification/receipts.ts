import { sql } from 'kysely'
import { clicksPrunedBefore } from '../clicks/click-retention.service.ts'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { isId, NIL_ID } from '../platform/ids.ts'
import {
  attributionOf,
  decideSale,
  namedBy,
  SALE_RULE_VERSION,
  type SaleDecision,
  type SaleReceipt,
} from '../sales/accept-sale.rule.ts'
import { type Breach, type Invariant, inPages } from './invariant.ts'
import { readFormerDecisions, readSales, type StoredFormer, type StoredSale } from './stored-sales.ts'

/** The one check that needs our own code: each stored decision is taken again from its stored facts. */
export const RECEIPTS_REPLAY: Invariant = {
  name: 'receipts-replay',
  statement:
    'Each stored decision, taken again from its stored facts, gives the same verdict, reason and amounts; sale and click are what the facts say.',
  table: 'sales',
  breaches: (db, _keys, scope) =>
    inPages(
      (after: string | null) => readSales(db, after, scope),
      (row) => row.id,
      (page) => breachesOf(db, page),
    ),
}

/** The same for the former decisions of sales that were decided again. */
export const FORMER_DECISIONS_REPLAY: Invariant = {
  name: 'former-decisions-replay',
  statement:
    'Each former decision, taken again from its stored facts, rejects the order of its sale as not_paid; its click is what the facts say.',
  table: 'sale_decisions',
  breaches: (db, _keys, scope) =>
    inPages(
      (after: string | null) => readFormerDecisions(db, after, scope),
      (row) => row.sale_id,
      (page) => formerBreachesOf(db, page),
    ),
}

async function formerBreachesOf(db: Queries, page: readonly StoredFormer[]): Promise<Breach[]> {
  const replayed = page.map((former) => ({ former, receipt: replay(former.receipt) }))
  const clicks = await readClicks(
    db,
    replayed.flatMap(({ receipt }) => receipt?.facts.click?.id ?? []),
  )
  return replayed.flatMap(({ former, receipt }) => {
    const seen = receipt?.facts.click
    const detail = formerDifferenceOf(former, receipt) ?? (seen ? clickDifferenceOf(seen, clicks) : null)
    return detail ? [{ subject: `sale ${former.sale_id}`, detail: `former decision: ${detail}` }] : []
  })
}

function formerDifferenceOf(former: StoredFormer, receipt: ReplayedReceipt | null): string | null {
  if (!receipt) return 'its receipt cannot be read'
  const { facts, decision } = receipt
  if (facts.order.order_id !== former.order_id) return 'its receipt is about another order'
  if (facts.reporting_merchant_id !== former.merchant_id) return 'its receipt is about another merchant'
  if (decision.rejection_reason !== 'not_paid') return 'it did not reject the order as not_paid'
  return decisionDifferenceOf(receipt)
}

/** Nothing is kept of a sale that is as its receipt says: what lives while a page is worked on is copied again and again. */
async function breachesOf(db: Queries, sales: readonly StoredSale[]): Promise<Breach[]> {
  const findings: Finding[] = []
  for (const sale of sales) {
    const finding = findingOf(sale)
    if (finding) findings.push(finding)
  }
  const clicks = await readClicks(
    db,
    findings.flatMap(({ click }) => click?.id ?? []),
  )
  return findings.flatMap(({ sale, detail, click }) => {
    const found = detail ?? (click && clickDifferenceOf(click, clicks))
    return found ? [{ subject: `sale ${sale.id}`, detail: found }] : []
  })
}

type SeenClick = NonNullable<SaleReceipt['facts']['click']>

/** What is wrong with a sale; or the click that its decision looked at, when that one is not beside it. */
interface Finding {
  sale: StoredSale
  detail: string | null
  click: SeenClick | null
}

function findingOf(sale: StoredSale): Finding | null {
  const receipt = replay(sale.receipt)
  if (!receipt) return { sale, detail: 'its receipt cannot be read', click: null }
  const detail = differenceOf(sale, receipt)
  if (detail !== null) return { sale, detail, click: null }
  const { click } = receipt.facts
  if (!click || isBeside(sale, click)) return null
  return { sale, detail: null, click }
}

type ClickRecord = Pick<Schema['clicks'], 'link_id' | 'created_at' | 'tracked'>

/** Whether the click beside a sale is the one that its decision looked at, and is as that has it. */
function isBeside(sale: StoredSale, seen: SeenClick): boolean {
  return (
    sale.click_id === seen.id &&
    sale.clicked_link_id === seen.link.id &&
    sale.clicked_at === seen.created_at &&
    (sale.click_tracked === 1) === seen.tracked
  )
}

interface Clicks {
  byId: Map<string, ClickRecord>
  /** Clicks with smaller ids may be gone; read after the clicks, so that one pruned in between is known to be. */
  pruned: string
}

async function readClicks(db: Queries, ids: readonly string[]): Promise<Clicks> {
  if (ids.length === 0) return { byId: new Map(), pruned: NIL_ID }
  // A changed receipt may contain something else, which PostgreSQL would refuse as an id.
  const known = [...new Set(ids.filter(isId))]
  const clicks = await db
    .selectFrom('clicks')
    .select(['id', 'link_id', 'created_at', 'tracked'])
    .where(sql<boolean>`id ${inList(dialectOf(db), 'uuid', known)}`)
    .execute()
  return { byId: new Map(clicks.map((click) => [click.id, click])), pruned: await clicksPrunedBefore(db) }
}

/** Of every click that a decision looked at, also one that led to another merchant's link. */
function clickDifferenceOf(seen: SeenClick, { byId, pruned }: Clicks): string | null {
  const click = byId.get(seen.id)
  if (!click) return seen.id < pruned ? null : `its click ${seen.id} does not exist`
  const same =
    click.link_id === seen.link.id &&
    click.created_at === seen.created_at &&
    (click.tracked === 1) === seen.tracked
  return same ? null : `its click ${seen.id} is not what its receipt says`
}

function decisionDifferenceOf({ decision, again }: ReplayedReceipt): string | null {
  if (decision.rule_version !== SALE_RULE_VERSION) return 'its rule version is unknown'
  const same = again === decision || JSON.stringify(again) === JSON.stringify(decision)
  return same ? null : 'the rule decides otherwise from its stored facts'
}

function differenceOf(sale: StoredSale, receipt: ReplayedReceipt): string | null {
  const detail = decisionDifferenceOf(receipt)
  if (detail !== null) return detail
  const { facts, decision } = receipt
  const stored = {
    merchant_id: facts.reporting_merchant_id,
    order_id: facts.order.order_id,
    order_name: facts.order.order_name,
    ...namedBy(attributionOf(facts)),
    ordered_at: facts.order.created_at,
    acceptance_status: decision.acceptance_status,
    rejection_reason: decision.rejection_reason,
    net_amount: decision.net_amount,
    commission_rate: decision.commission_rate,
    commission: decision.commission,
    platform_fee: decision.platform_fee,
  }
  for (const column in stored) {
    const name = column as keyof typeof stored
    if (sale[name] !== stored[name]) return `${column} is not what its receipt says`
  }
  return null
}

/** Where the facts of a receipt end. Inside of a text its quotes would be escaped, so it stands there once. */
const DECISION = ',"decision":'
const FACTS = '{"facts":'

interface ReplayedReceipt extends SaleReceipt {
  /** The decision taken again; the very object `decision` when the stored one is the same to the letter. */
  again: SaleDecision
}

/**
 * Reads a receipt and takes its decision again. Most of the text is the decision, which need not be read when it is
 * what the rule says now.
 */
function replay(text: string): ReplayedReceipt | null {
  const end = text.indexOf(DECISION)
  if (text.startsWith(FACTS) && end > 0) {
    const facts = parsed(text.slice(FACTS.length, end)) as SaleReceipt['facts'] | null
    const again = facts?.order ? decided(facts) : null
    if (!facts || !again) return null
    if (endsWithDecision(text, end + DECISION.length, again)) return { facts, decision: again, again }
  }
  const receipt = parsed(text) as SaleReceipt | null
  if (!receipt?.facts?.order || !receipt.decision) return null
  const again = decided(receipt.facts)
  return again && { ...receipt, again }
}

function endsWithDecision(text: string, from: number, again: SaleDecision): boolean {
  const decision = JSON.stringify(again)
  // Cut out, not `startsWith`: that compares letter by letter, which takes longer than the rule itself.
  return text.endsWith('}') && text.slice(from, -1) === decision
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
