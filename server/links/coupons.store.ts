import { type Selectable, sql } from 'kysely'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { countOf, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { authentic } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'

export type CouponRow = Selectable<Schema['link_coupons']>

/** The coupon codes in force of these links. */
export function couponsInForce(db: Queries | Tx, linkIds: readonly string[]): Promise<CouponRow[]> {
  if (linkIds.length === 0) return Promise.resolve([])
  return db
    .selectFrom('link_coupons')
    .selectAll()
    .where('link_id', 'in', linkIds)
    .where('ends_at', 'is', null)
    .execute()
}

/** The latest codes of a link, newest first. */
export function couponsOfLink(db: Queries, linkId: string, limit: number): Promise<CouponRow[]> {
  return db
    .selectFrom('link_coupons')
    .selectAll()
    .where('link_id', '=', linkId)
    .orderBy('starts_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** The last row of a merchant's code: the one in force, if any is. */
export function lastOfCode(db: Queries | Tx, merchantId: string, code: string) {
  return db
    .selectFrom('link_coupons')
    .selectAll()
    .where('merchant_id', '=', merchantId)
    .where('code', '=', code)
    .orderBy(sql`ends_at is null`, 'desc')
    .orderBy('starts_at', 'desc')
    .limit(1)
    .executeTakeFirst()
}

/** The number of a merchant's codes that began since `since` (epoch ms). */
export function countCodesSince(tx: Tx, merchantId: string, since: number): Promise<number> {
  return countOf(
    tx.selectFrom('link_coupons').where('merchant_id', '=', merchantId).where('starts_at', '>', since),
  )
}

/** A code that an order of a merchant's store carries. */
interface MerchantCode {
  merchant_id: string
  code: string
}

const wantedCodes = valuesTable<MerchantCode>('wanted', { merchant_id: 'uuid', code: 'text' })

/** Every time that one of these codes belonged to a link, oldest first. Throws `TamperedRow` and `UnknownKeyError`. */
export async function historyOfCodes(db: Queries | Tx, keys: AppKeys, codes: readonly MerchantCode[]) {
  if (codes.length === 0) return []
  const found = await sql<CouponRow>`
    select coupon.*
    from ${wantedCodes(dialectOf(db), codes)}
    join link_coupons as coupon on coupon.merchant_id = wanted.merchant_id and coupon.code = wanted.code
    order by coupon.starts_at, coupon.id`.execute(db)
  return authentic(keys, 'link_coupons', found.rows)
}
