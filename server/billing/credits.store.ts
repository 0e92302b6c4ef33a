import { type Insertable, sql } from 'kysely'
import type { Queries, Tx } from '../platform/database.ts'
import type { Schema } from '../platform/schema.ts'

/** Holds off other closes and credits of this merchant until the transaction ends: both reckon with the same credit. */
export async function lockMerchantCredit(
  tx: Tx,
  dialect: 'sqlite' | 'postgresql',
  merchantId: string,
): Promise<void> {
  // On SQLite the transaction holds the write lock already.
  if (dialect === 'sqlite') return
  await sql`select pg_advisory_xact_lock(hashtextextended(${merchantId}, 0))`.execute(tx)
}

/** All credit granted to a merchant, paisa. */
export async function creditGrantedTo(db: Queries, merchantId: string): Promise<number> {
  const row = await db
    .selectFrom('credits')
    .select((query) => query.fn.sum<number | null>('amount').as('amount'))
    .where('merchant_id', '=', merchantId)
    .executeTakeFirst()
  return row?.amount ?? 0
}

/** What the merchant's cycles hold, open ones included, paisa. */
export async function cycleTotals(
  db: Queries,
  merchantId: string,
): Promise<{ accepted: number; creditUsed: number }> {
  const row = await db
    .selectFrom('billing_cycles')
    .select([
      sql<number | null>`sum(commission_total + fee_total)`.as('accepted'),
      sql<number | null>`sum(credit_total)`.as('creditUsed'),
    ])
    .where('merchant_id', '=', merchantId)
    .executeTakeFirst()
  return { accepted: row?.accepted ?? 0, creditUsed: row?.creditUsed ?? 0 }
}

/** Adds a credit; false when its reference is taken. */
export async function insertCredit(tx: Tx, credit: Insertable<Schema['credits']>): Promise<boolean> {
  const added = await tx
    .insertInto('credits')
    .values(credit)
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .execute()
  return added.length === 1
}

export function findCreditByReference(db: Queries, reference: string) {
  return db.selectFrom('credits').selectAll().where('reference', '=', reference).executeTakeFirst()
}
