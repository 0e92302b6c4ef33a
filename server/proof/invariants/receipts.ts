import type { Queries } from '../../platform/database.ts'
import { isId } from '../../platform/ids.ts'
import { decideSale } from '../../sales/accept-sale.rule.ts'
import type { SaleReceipt } from '../../sales/sales.service.ts'
import { type Breach, countRows, type Invariant, MOST_BREACHES } from './invariant.ts'

const PAGE = 2000

/** The one check that needs our own code: each stored decision is taken again from its stored facts. */
export const RECEIPTS_REPLAY: Invariant = {
  name: 'receipts-replay',
  statement:
    'Each stored decision, taken again from its stored facts, gives the same verdict, reason and amounts; sale and click are what the facts say.',
  count: (db) => countRows(db, 'sales'),
  async breaches(db) {
    const breaches: Breach[] = []
    let after = ''
    for (;;) {
      const page = await readPage(db, after)
      const read = page.map((sale) => ({ sale, receipt: readReceipt(sale.receipt) }))
      const clicks = await clicksOf(
        db,
        read.flatMap(({ receipt }) => receipt?.facts.click?.id ?? []),
      )
      for (const { sale, receipt } of read) {
        const detail = receipt
          ? (differenceOf(sale, receipt) ?? clickDifferenceOf(receipt.facts.click, clicks))
          : 'its receipt cannot be read'
        if (detail) breaches.push({ subject: `sale ${sale.id}`, detail })
      }
      const last = page.at(-1)
      if (!last || breaches.length >= MOST_BREACHES) return breaches.slice(0, MOST_BREACHES)
      after = last.id
    }
  },
}

type SaleFigures = Awaited<ReturnType<typeof readPage>>[number]

function readPage(db: Queries, after: string) {
  return db
    .selectFrom('sales')
    .select([
      'id',
      'merchant_id',
      'order_id',
      'order_name',
      'offer_id',
      'creator_id',
      'link_id',
      'click_id',
      'ordered_at',
      'acceptance_status',
      'rejection_reason',
      'net_amount',
      'commission_rate',
      'commission',
      'platform_fee',
      'receipt',
    ])
    .$if(after !== '', (query) => query.where('id', '>', after))
    .orderBy('id')
    .limit(PAGE)
    .execute()
}

type ClickRecord = Awaited<ReturnType<typeof readClicks>>[number]

async function clicksOf(db: Queries, ids: readonly string[]): Promise<Map<string, ClickRecord>> {
  // Whoever changed a receipt may have left no id there, which PostgreSQL would refuse.
  const known = [...new Set(ids.filter(isId))]
  const clicks = known.length > 0 ? await readClicks(db, known) : []
  return new Map(clicks.map((click) => [click.id, click]))
}

function readClicks(db: Queries, ids: readonly string[]) {
  return db
    .selectFrom('clicks')
    .select(['id', 'link_id', 'created_at', 'tracked'])
    .where('id', 'in', ids)
    .execute()
}

/** Of every click that a decision looked at, also one that led to another merchant's link. */
function clickDifferenceOf(
  seen: SaleReceipt['facts']['click'],
  clicks: ReadonlyMap<string, ClickRecord>,
): string | null {
  if (!seen) return null
  const click = clicks.get(seen.id)
  if (!click) return `its click ${seen.id} does not exist`
  const same =
    click.link_id === seen.link.id &&
    click.created_at === seen.created_at &&
    (click.tracked === 1) === seen.tracked
  return same ? null : `its click ${seen.id} is not what its receipt says`
}

function differenceOf(sale: SaleFigures, receipt: SaleReceipt): string | null {
  const { facts, decision } = receipt
  const again = decideSale(facts)
  const same = JSON.stringify(again) === JSON.stringify(decision)
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

function readReceipt(text: string): SaleReceipt | null {
  try {
    const receipt = JSON.parse(text) as SaleReceipt
    return receipt.facts?.order && receipt.decision ? receipt : null
  } catch {
    return null
  }
}
