import { type SqlBool, sql } from 'kysely'
import type { RejectionReason } from '../../shared/rejection-reasons.ts'
import type { Queries } from '../platform/database/database.ts'
import type { OwnScope } from '../platform/database/keyset-scan.ts'
import { firstIdAt } from '../platform/ids.ts'

/** Epoch ms; `to` exclusive, `null` for no end. */
interface Period {
  from: number
  to: number | null
}

/** Far more than lies between the moment of a sale and its id, which are made one after the other. */
const ID_SLACK_MS = 3_600_000

interface OutcomeCount {
  /** `null`: accepted. */
  rejection_reason: RejectionReason | null
  sales: number
  /** Of these, by a coupon code. */
  by_coupon: number
  /** Paisa. */
  commission: number
}

function outcomesIn(db: Queries, scope: OwnScope) {
  return db
    .selectFrom('sales')
    .select([
      'rejection_reason',
      sql<number>`count(*)`.as('sales'),
      sql<number>`count(coupon_code)`.as('by_coupon'),
      sql<number>`sum(commission)`.as('commission'),
    ])
    .where(ownedBy(scope))
    .groupBy('rejection_reason')
}

/**
 * Ids of all sales decided a second time from `from` to before `to` (epoch ms; `null` for no end). As a subquery, so that SQLite does
 * not read all sales of a party in search of these few.
 */
export function decidedAgainIds(db: Queries, from: number, to: number | null) {
  return db
    .selectFrom('sales as again')
    .select('again.id')
    .where('again.decided_at', '>=', from)
    .$if(to !== null, (query) => query.where('again.decided_at', '<', to ?? 0))
}

/** Sales decided in a period by their outcome, the most frequent first. */
export async function countOutcomes(
  db: Queries,
  scope: OwnScope,
  { from, to }: Period,
): Promise<OutcomeCount[]> {
  // Sales decided once, by the index on scope and id.
  const once = await outcomesIn(db, scope)
    .where('decided_at', 'is', null)
    .where('id', '>=', firstIdAt(from - ID_SLACK_MS))
    .where('created_at', '>=', from)
    .$if(to !== null, (query) =>
      query.where('id', '<', firstIdAt((to ?? 0) + ID_SLACK_MS)).where('created_at', '<', to ?? 0),
    )
    .execute()
  // The few sales decided a second time in the period, by their own index.
  const again = await outcomesIn(db, scope)
    .where('id', 'in', decidedAgainIds(db, from, to))
    .execute()
  const counts = new Map<string | null, OutcomeCount>()
  for (const row of [...once, ...again]) {
    const former = counts.get(row.rejection_reason) ?? { ...row, sales: 0, by_coupon: 0, commission: 0 }
    counts.set(row.rejection_reason, {
      rejection_reason: row.rejection_reason,
      sales: former.sales + row.sales,
      by_coupon: former.by_coupon + row.by_coupon,
      commission: former.commission + row.commission,
    })
  }
  const word = (count: OutcomeCount) => count.rejection_reason ?? ''
  return [...counts.values()].sort((a, b) => b.sales - a.sales || (word(a) < word(b) ? -1 : 1))
}

export function ownedBy(scope: OwnScope) {
  return 'merchantId' in scope
    ? sql<SqlBool>`sales.merchant_id = ${scope.merchantId}`
    : sql<SqlBool>`sales.creator_id = ${scope.creatorId}`
}

/** The offers that earned most commission (paisa) in a billing cycle; reads the cycle's sales, by their index. */
export async function topOffers(db: Queries, cycleId: string, limit: number) {
  const { rows } = await sql<{
    offer_id: string
    title: string
    sales: number
    commission: number
    platform_fee: number
  }>`
    select offer_id, (select title from offers where id = offer_id) as title, count(*) as sales,
      sum(commission) as commission, sum(platform_fee) as platform_fee
    from sales where billing_cycle_id = ${cycleId} group by offer_id
    order by sum(commission) desc, offer_id limit ${limit}`.execute(db)
  return rows
}

/** The creators who earned most (paisa) in a billing cycle. */
export function topCreators(db: Queries, cycleId: string, limit: number) {
  return db
    .selectFrom('billing_cycle_shares as share')
    .innerJoin('users as creator', 'creator.id', 'share.creator_id')
    .select(['share.creator_id', 'creator.display_name', 'share.sales_count as sales', 'share.commission'])
    .where('billing_cycle_id', '=', cycleId)
    .orderBy('commission', 'desc')
    .orderBy('creator_id')
    .limit(limit)
    .execute()
}

/** Ids of a creator's links after the id `after`, ascending. */
export async function ownLinkIds(
  db: Queries,
  creatorId: string,
  after: string | null,
  limit: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('affiliate_links')
    .select('id')
    .where('creator_id', '=', creatorId)
    .$if(after !== null, (query) => query.where('id', '>', after ?? ''))
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map((row) => row.id)
}
