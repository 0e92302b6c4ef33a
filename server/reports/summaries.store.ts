import { type SqlBool, sql } from 'kysely'
import type { Queries } from '../platform/database/database.ts'
import type { OwnScope } from '../platform/database/keyset-scan.ts'
import { firstIdAt, ID_SLACK_MS } from '../platform/ids.ts'

/** `rejection_reason` is `null` for accepted sales; `by_coupon` counts those that a coupon code earned; commission in paisa. */
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

/** Sales decided from `from` to before `to` (epoch ms; `null` for no end) by their outcome, the most frequent first. */
export async function countOutcomes(
  db: Queries,
  scope: OwnScope,
  { from, to }: { from: number; to: number | null },
) {
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
  const counts: typeof once = []
  for (const row of [...once, ...again]) {
    const same = counts.find((count) => count.rejection_reason === row.rejection_reason)
    if (!same) counts.push({ ...row })
    else for (const field of ['sales', 'by_coupon', 'commission'] as const) same[field] += row[field]
  }
  const word = (count: (typeof once)[number]) => count.rejection_reason ?? ''
  return counts.sort((a, b) => b.sales - a.sales || (word(a) < word(b) ? -1 : 1))
}

/** The orders that wait for their payment, and what they would pay (paisa), by a partial index. */
export async function countPending(
  db: Queries,
  scope: OwnScope,
): Promise<{ orders: number; commission: number }> {
  const pending = db.selectFrom('pending_orders').where('state', '=', sql.lit('pending'))
  const own =
    'merchantId' in scope
      ? pending.where('merchant_id', '=', scope.merchantId)
      : pending.where('creator_id', '=', scope.creatorId)
  const row = await own
    .select((eb) => eb.fn.countAll<number>().as('orders'))
    .select(sql<number | null>`sum(expected_commission)`.as('commission'))
    .executeTakeFirstOrThrow()
  return { orders: Number(row.orders), commission: Number(row.commission ?? 0) }
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

/** Ids of all links of a creator, or to a merchant's offers. */
export async function ownLinkIds(db: Queries, scope: OwnScope): Promise<string[]> {
  const links = db.selectFrom('affiliate_links').select('id')
  const own =
    'creatorId' in scope
      ? links.where('creator_id', '=', scope.creatorId)
      : links.where('merchant_id', '=', scope.merchantId)
  return (await own.execute()).map((row) => row.id)
}
