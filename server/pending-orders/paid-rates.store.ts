import { type SqlBool, sql } from 'kysely'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries } from '../platform/database/database.ts'

const DECIDED = sql<number>`sum(case when pending_orders.state <> 'pending' then 1 else 0 end)`
const PAID = sql<number>`sum(case when pending_orders.state = 'became_sale' then 1 else 0 end)`

/** How many pending orders of these offers, placed since `since` (epoch ms), are decided, and became sales. */
export async function countDecided(db: Queries, offerIds: readonly string[], since: number) {
  if (offerIds.length === 0) return []
  const rows = await db
    .selectFrom('pending_orders')
    .select(['offer_id as id', DECIDED.as('decided'), PAID.as('paid')])
    .where(sql<SqlBool>`offer_id ${inList(dialectOf(db), 'uuid', offerIds)}`)
    .where('placed_at', '>=', since)
    .groupBy('offer_id')
    .execute()
  return rows.map(({ id, decided, paid }) => ({ id, decided: Number(decided), paid: Number(paid) }))
}

/** The same for each merchant that has pending orders, the most decided first. */
export async function countDecidedByMerchant(db: Queries, since: number, limit: number) {
  const rows = await db
    .selectFrom('pending_orders')
    .select(['merchant_id as id', DECIDED.as('decided'), PAID.as('paid')])
    .select((eb) => eb.fn.countAll<number>().as('placed'))
    .where('placed_at', '>=', since)
    .groupBy('merchant_id')
    .orderBy(DECIDED, 'desc')
    .orderBy('merchant_id')
    .limit(limit)
    .execute()
  return rows.map(({ id, placed, decided, paid }) => ({
    id,
    placed: Number(placed),
    decided: Number(decided),
    paid: Number(paid),
  }))
}
