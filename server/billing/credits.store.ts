import { type Selectable, sql } from 'kysely'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { authentic } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'

type CreditRow = Selectable<Schema['credits']>

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
export async function availableCredits(db: Queries, merchantIds: readonly string[]) {
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

/** All credits of these merchants. Throws `TamperedRow` and `UnknownKeyError`. */
export async function creditsOf(db: Queries, keys: AppKeys, merchantIds: readonly string[]) {
  const credits = await db
    .selectFrom('credits')
    .selectAll()
    .where(sql<boolean>`merchant_id ${inList(dialectOf(db), 'uuid', merchantIds)}`)
    .execute()
  return authentic(keys, 'credits', credits)
}

/** `availableCredits` once all that they are computed from is checked. Throws `TamperedRow` and `UnknownKeyError`. */
export async function checkedCredits(db: Queries, keys: AppKeys, merchantIds: readonly string[]) {
  const credits = await creditsOf(db, keys, merchantIds)
  const credited = [...new Set(credits.map(({ merchant_id }) => merchant_id))]
  if (credited.length === 0) return new Map<string, number>()
  const cycles = await db
    .selectFrom('billing_cycles')
    .selectAll()
    .where(sql<boolean>`merchant_id ${inList(dialectOf(db), 'uuid', credited)}`)
    .execute()
  authentic(keys, 'billing_cycles', cycles)
  return availableCredits(db, credited)
}

export function findCreditByReference(db: Queries, reference: string) {
  return db.selectFrom('credits').selectAll().where('reference', '=', reference).executeTakeFirst()
}

/** The credit that granted a request, by the flag of the request. */
export function creditOfRequest(db: Queries, flagId: string) {
  return db.selectFrom('credits').selectAll().where('request_id', '=', flagId).executeTakeFirst()
}

/** `reference`: the operator's own number. */
export type CreditName = Pick<CreditRow, 'reference' | 'reason'>

/** By credit id, for a few thousand ids at most. */
export async function creditNamesOf(db: Queries, ids: readonly string[]): Promise<Map<string, CreditName>> {
  if (ids.length === 0) return new Map()
  const credits = db.selectFrom('credits').select(['id', 'reference', 'reason'])
  const rows = await credits.where('id', 'in', [...new Set(ids)]).execute()
  return new Map(rows.map(({ id, ...name }) => [id, name]))
}
