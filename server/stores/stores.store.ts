import type { Selectable } from 'kysely'
import type { Queries, Tx } from '../platform/database.ts'
import type { Schema } from '../platform/schema.ts'

export type StoreRow = Selectable<Schema['stores']>
export type StoreSecretRow = Selectable<Schema['store_secrets']>

/** The store that uses a domain now, whoever's it is. */
export function activeStoreOfDomain(db: Queries | Tx, domain: string): Promise<StoreRow | undefined> {
  return db
    .selectFrom('stores')
    .selectAll()
    .where('shop_domain', '=', domain)
    .where('removed_at', 'is', null)
    .executeTakeFirst()
}

/** The merchant's own removed store of a domain; the oldest, should there be several. */
export function removedStoreOfDomain(
  tx: Tx,
  merchantId: string,
  domain: string,
): Promise<StoreRow | undefined> {
  return tx
    .selectFrom('stores')
    .selectAll()
    .where('merchant_id', '=', merchantId)
    .where('shop_domain', '=', domain)
    .where('removed_at', 'is not', null)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
}

export async function insertStore(tx: Tx, row: StoreRow): Promise<void> {
  await tx.insertInto('stores').values(row).execute()
}

/** Removes a store in use (epoch ms), or puts a removed one (`null`) back; whether it was in the other state. */
export async function setRemovedAt(tx: Tx, storeId: string, removedAt: number | null): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('stores')
    .set({ removed_at: removedAt })
    .where('id', '=', storeId)
    .where('removed_at', removedAt === null ? 'is not' : 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/**
 * The merchant's store in use, held until the transaction ends: a write that changes nothing is the row lock that
 * SQLite and PostgreSQL have in common.
 */
export function lockOwnStore(tx: Tx, merchantId: string, storeId: string): Promise<StoreRow | undefined> {
  return tx
    .updateTable('stores')
    .set((eb) => ({ created_at: eb.ref('created_at') }))
    .where('id', '=', storeId)
    .where('merchant_id', '=', merchantId)
    .where('removed_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
}

/** The merchant's stores in use, newest first, after the id `after`. */
export function storesOf(
  db: Queries,
  merchantId: string,
  after: string | null,
  limit: number,
): Promise<StoreRow[]> {
  let query = db
    .selectFrom('stores')
    .selectAll()
    .where('merchant_id', '=', merchantId)
    .where('removed_at', 'is', null)
  if (after !== null) query = query.where('id', '<', after)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

/** Every merchant's stores, removed ones too, newest first: for operators. */
export function everyStore(db: Queries, after: string | null, limit: number): Promise<StoreRow[]> {
  let query = db.selectFrom('stores').selectAll()
  if (after !== null) query = query.where('id', '<', after)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

export async function countStoresInUse(db: Queries | Tx, merchantId: string): Promise<number> {
  const { stores } = await db
    .selectFrom('stores')
    .select((eb) => eb.fn.countAll<number>().as('stores'))
    .where('merchant_id', '=', merchantId)
    .where('removed_at', 'is', null)
    .executeTakeFirstOrThrow()
  return stores
}

export function secretsByFingerprint(tx: Tx, fingerprints: readonly string[]): Promise<StoreSecretRow[]> {
  return tx.selectFrom('store_secrets').selectAll().where('fingerprint', 'in', fingerprints).execute()
}

/** A store's secrets, the present one first, then the former ones from the newest. */
export async function secretsOf(db: Queries | Tx, storeId: string): Promise<StoreSecretRow[]> {
  const rows = await db
    .selectFrom('store_secrets')
    .selectAll()
    .where('store_id', '=', storeId)
    .orderBy('id', 'desc')
    .execute()
  return [
    ...rows.filter((row) => row.valid_until === null),
    ...rows.filter((row) => row.valid_until !== null),
  ]
}

export async function insertSecret(tx: Tx, row: StoreSecretRow): Promise<void> {
  await tx.insertInto('store_secrets').values(row).execute()
}

/** Writes a secret's row anew, unless it changed since it was read as `sealed`; whether it did. */
export async function replaceSecret(tx: Tx, sealed: string, row: StoreSecretRow): Promise<boolean> {
  const { secret_encrypted, fingerprint, valid_until } = row
  const { numUpdatedRows } = await tx
    .updateTable('store_secrets')
    .set({ secret_encrypted, fingerprint, valid_until })
    .where('id', '=', row.id)
    .where('secret_encrypted', '=', sealed)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export async function deleteSecrets(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await tx.deleteFrom('store_secrets').where('id', 'in', ids).execute()
}

export async function deleteSecretsOf(tx: Tx, storeId: string): Promise<void> {
  await tx.deleteFrom('store_secrets').where('store_id', '=', storeId).execute()
}

export async function ownersOf(db: Queries, storeIds: readonly string[]): Promise<Map<string, string>> {
  if (storeIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('stores')
    .select(['id', 'merchant_id'])
    .where('id', 'in', storeIds)
    .execute()
  return new Map(rows.map((row) => [row.id, row.merchant_id]))
}

export function storesById(db: Queries, storeIds: readonly string[]): Promise<StoreRow[]> {
  if (storeIds.length === 0) return Promise.resolve([])
  return db.selectFrom('stores').selectAll().where('id', 'in', storeIds).execute()
}

/** Every store that uses or has used a domain, whoever's it was. */
export function storesOfDomain(db: Queries, domain: string): Promise<StoreRow[]> {
  return db.selectFrom('stores').selectAll().where('shop_domain', '=', domain).execute()
}
