import { type Insertable, sql } from 'kysely'
import { dialectOf, type Queries, type Tx } from '../platform/database.ts'
import { among } from '../platform/row-set.ts'
import type { Schema } from '../platform/schema.ts'

/**
 * Holds off other closes and credits of these merchants, who come in sorted order, until the transaction ends: all of
 * them reckon with the same credit.
 */
export async function lockMerchantCredits(tx: Tx, merchantIds: readonly string[]): Promise<void> {
  // On SQLite the transaction holds the write lock already.
  if (dialectOf(tx) === 'sqlite') return
  await sql`select pg_advisory_xact_lock(hashtextextended(id, 0))
    from unnest(cast(${merchantIds} as text[])) as merchant (id)`.execute(tx)
}

export interface CreditStanding {
  /** Paisa, both. */
  granted: number
  creditUsed: number
}

/** What was granted to these merchants, and what their cycles have used of it; merchants without either are missing. */
export async function creditStandings(
  db: Queries,
  merchantIds: readonly string[],
): Promise<Map<string, CreditStanding>> {
  const of = among(dialectOf(db), 'uuid', merchantIds)
  const { rows } = await sql<CreditStanding & { merchant_id: string }>`
    select merchant_id, sum(granted) as granted, sum(used) as "creditUsed" from (
      select merchant_id, amount as granted, 0 as used from credits where merchant_id ${of}
      union all
      select merchant_id, 0, credit_total from billing_cycles where merchant_id ${of}
    ) as both_sides
    group by merchant_id`.execute(db)
  return new Map(rows.map((row) => [row.merchant_id, row]))
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
