import { type Insertable, sql } from 'kysely'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'

/**
 * Locks the credit of these merchants until the transaction ends: closes and grants compute with it. `merchantIds` must be sorted,
 * so that two transactions cannot deadlock.
 */
export async function lockMerchantCredits(tx: Tx, merchantIds: readonly string[]): Promise<void> {
  // On SQLite the transaction holds the write lock already.
  if (dialectOf(tx) === 'sqlite') return
  await sql`select pg_advisory_xact_lock(hashtextextended(id, 0))
    from unnest(cast(${merchantIds} as text[])) as merchant (id)`.execute(tx)
}

/** The granted credit that no cycle has used, paisa, by merchant. Merchants without credit may be missing. */
export async function availableCredits(
  db: Queries,
  merchantIds: readonly string[],
): Promise<Map<string, number>> {
  const ofMerchants = inList(dialectOf(db), 'uuid', merchantIds)
  const { rows } = await sql<{ merchant_id: string; available: number }>`
    select merchant_id, sum(amount) as available from (
      select merchant_id, amount from credits where merchant_id ${ofMerchants}
      union all
      select merchant_id, -credit_total from billing_cycles where merchant_id ${ofMerchants}
    ) as granted_and_used
    group by merchant_id`.execute(db)
  return new Map(rows.map((row) => [row.merchant_id, row.available]))
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

/** Adds a credit. Returns false when its reference is taken. */
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

export async function creditsById(
  db: Queries,
  ids: readonly string[],
): Promise<{ id: string; reference: string; reason: string }[]> {
  if (ids.length === 0) return []
  return db.selectFrom('credits').select(['id', 'reference', 'reason']).where('id', 'in', ids).execute()
}
