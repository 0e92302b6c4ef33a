import { type SqlBool, sql } from 'kysely'
import { clicksPrunedBefore } from '../clicks/click-retention.service.ts'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries } from '../platform/database/database.ts'
import { isId } from '../platform/ids.ts'
import {
  attributionOf,
  decideSale,
  isKnownVersion,
  namedBy,
  readReceipt,
  type SaleReceipt,
} from '../sales/accept-sale.rule.ts'
import { type Breach, type Invariant, inPages } from './invariant.ts'
import type { Scope } from './scope.ts'

/** The checks that need our own code: each stored decision is taken again from its stored facts. */
export const RECEIPT_INVARIANTS: Invariant[] = [
  {
    name: 'receipts-replay',
    statement:
      'Each stored decision, taken again from its stored facts, gives the same verdict, reason and amounts; sale and click are what the facts say.',
    table: 'sales',
    breaches: (db, _keys, scope) =>
      inPages(
        (after: StoredSale | null) => readSales(db, after, scope),
        (page) => breachesOf(db, page, differenceOf),
      ),
  },
  {
    name: 'former-decisions-replay',
    statement:
      'Each former decision, taken again from its stored facts, rejects the order of its sale as not_paid; its click is what the facts say.',
    table: 'sale_decisions',
    breaches: (db, _keys, scope) =>
      inPages(
        (after: StoredFormer | null) => readFormerDecisions(db, after, scope),
        (page) => breachesOf(db, page, formerDifferenceOf, 'former decision: '),
      ),
  },
]

/** Receipts are kilobytes, so pages are small; PostgreSQL plans each page, which must take little of the time of its rows. */
const PAGE = { sqlite: 250, postgresql: 600 }

type StoredSale = Awaited<ReturnType<typeof readSales>>[number]

function readSales(db: Queries, after: { id: string } | null, scope: Scope) {
  return db
    .selectFrom('sales')
    .selectAll()
    .$if(after !== null, (query) => query.where('id', '>', after?.id ?? ''))
    .where(scope.isNewSale('sales.id'))
    .orderBy('id')
    .limit(PAGE[dialectOf(db)])
    .execute()
}

type StoredFormer = Awaited<ReturnType<typeof readFormerDecisions>>[number]

function readFormerDecisions(db: Queries, after: { id: string } | null, scope: Scope) {
  return db
    .selectFrom('sale_decisions as former')
    .innerJoin('sales as sale', 'sale.id', 'former.sale_id')
    .select(['former.sale_id as id', 'former.receipt', 'sale.merchant_id', 'sale.order_id'])
    .$if(after !== null, (query) => query.where('former.sale_id', '>', after?.id ?? ''))
    .where(scope.isNewSale('former.sale_id'))
    .orderBy('former.sale_id')
    .limit(PAGE[dialectOf(db)])
    .execute()
}

type SeenClick = NonNullable<SaleReceipt['facts']['click']>

/** Replays the receipts of a page, then looks up the clicks that they name, also those on another merchant's link. */
async function breachesOf<Row extends { id: string; receipt: string }>(
  db: Queries,
  page: readonly Row[],
  compare: (row: Row, receipt: SaleReceipt) => string | null,
  prefix = '',
): Promise<Breach[]> {
  const replayed = page.map((row) => {
    const receipt = readReceipt(row.receipt)
    const detail = receipt ? compare(row, receipt) : 'its receipt cannot be read'
    return { saleId: row.id, detail, click: receipt?.facts.click ?? null }
  })
  // A changed receipt may contain something else, which PostgreSQL would refuse as an id.
  const ids = replayed.map(({ click }) => click?.id ?? '').filter(isId)
  const rows = await db
    .selectFrom('clicks')
    .select(['id', 'link_id', 'created_at', 'tracked'])
    .where(sql<SqlBool>`id ${inList(dialectOf(db), 'uuid', ids)}`)
    .execute()
  const clicks = new Map(rows.map((click) => [click.id, click]))
  // Read after the clicks, so that one pruned in between is known to be.
  const pruned = await clicksPrunedBefore(db)
  const clickProblem = ({ id, link, created_at, tracked }: SeenClick): string | null => {
    const click = clicks.get(id)
    if (!click) return id < pruned ? null : `its click ${id} does not exist`
    const same =
      click.link_id === link.id && click.created_at === created_at && (click.tracked === 1) === tracked
    return same ? null : `its click ${id} is not what its receipt says`
  }
  return replayed.flatMap(({ saleId, detail, click }) => {
    const found = detail ?? (click && clickProblem(click))
    return found ? [{ subject: `sale ${saleId}`, detail: prefix + found }] : []
  })
}

function formerDifferenceOf(former: StoredFormer, receipt: SaleReceipt): string | null {
  const { facts, decision } = receipt
  if (facts.order.order_id !== former.order_id) return 'its receipt is about another order'
  if (facts.reporting_merchant_id !== former.merchant_id) return 'its receipt is about another merchant'
  if (decision.rejection_reason !== 'not_paid') return 'it did not reject the order as not_paid'
  return decisionDifferenceOf(receipt)
}

function decisionDifferenceOf({ facts, decision }: SaleReceipt): string | null {
  if (!isKnownVersion(decision.rule_version)) return 'its rule version is unknown'
  try {
    if (JSON.stringify(decideSale(facts)) === JSON.stringify(decision)) return null
    return 'the rule decides otherwise from its stored facts'
  } catch {
    return 'its receipt cannot be read'
  }
}

function differenceOf(sale: StoredSale, receipt: SaleReceipt): string | null {
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
  const names = Object.keys(stored) as (keyof typeof stored)[]
  const column = names.find((name) => sale[name] !== stored[name])
  return column === undefined ? null : `${column} is not what its receipt says`
}
