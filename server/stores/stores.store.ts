import { type Selectable, sql } from 'kysely'
import type { Queries, Tx } from '../platform/database.ts'
import type { Schema } from '../platform/schema.ts'

export type StoreRow = Selectable<Schema['stores']>
export type StoreSecretRow = Selectable<Schema['store_secrets']>

/** Every claim on a domain, removed ones too, oldest first. */
export function claimsOnDomain(db: Queries | Tx, domain: string): Promise<StoreRow[]> {
  return db.selectFrom('stores').selectAll().where('shop_domain', '=', domain).orderBy('id').execute()
}

export async function insertStore(tx: Tx, row: StoreRow): Promise<void> {
  await tx.insertInto('stores').values(row).execute()
}

/** Puts a removed store back into use; whether it was removed. It has received nothing since. */
export async function restoreStore(tx: Tx, storeId: string): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('stores')
    .set({ removed_at: null, first_event_at: null })
    .where('id', '=', storeId)
    .where('removed_at', 'is not', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Takes a store out of use (epoch ms), by an operator's release or not; whether it was in use. */
export async function retireStore(
  tx: Tx,
  storeId: string,
  removedAt: number,
  released: boolean,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('stores')
    .set({ removed_at: removedAt, ...(released && { released_at: removedAt }) })
    .where('id', '=', storeId)
    .where('removed_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Marks the first signed event of stores in use that have none; answers those that had none. */
export function markFirstEvent(tx: Tx, storeIds: readonly string[], at: number): Promise<StoreRow[]> {
  return tx
    .updateTable('stores')
    .set({ first_event_at: at })
    .where('id', 'in', storeIds)
    .where('first_event_at', 'is', null)
    .where('removed_at', 'is', null)
    .returningAll()
    .execute()
}

/** Lets a merchant connect a domain again that an operator has released; answers the rows that this changed. */
export function clearReleased(tx: Tx, merchantId: string, domain: string): Promise<StoreRow[]> {
  return tx
    .updateTable('stores')
    .set({ released_at: null })
    .where('merchant_id', '=', merchantId)
    .where('shop_domain', '=', domain)
    .where('released_at', 'is not', null)
    .returningAll()
    .execute()
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

/** The merchant's store in use. */
export function ownStore(db: Queries, merchantId: string, storeId: string): Promise<StoreRow | undefined> {
  return db
    .selectFrom('stores')
    .selectAll()
    .where('id', '=', storeId)
    .where('merchant_id', '=', merchantId)
    .where('removed_at', 'is', null)
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
  return (await secretsOfStores(db, [storeId])).get(storeId) ?? []
}

/** The same of several stores, by store id. */
export async function secretsOfStores(
  db: Queries | Tx,
  storeIds: readonly string[],
): Promise<Map<string, StoreSecretRow[]>> {
  if (storeIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('store_secrets')
    .selectAll()
    .where('store_id', 'in', storeIds)
    .orderBy(sql`valid_until is not null`)
    .orderBy('id', 'desc')
    .execute()
  return Map.groupBy(rows, (row) => row.store_id)
}

/** A secret with what its store adds to it. */
export type OwnedSecretRow = StoreSecretRow & Pick<StoreRow, 'merchant_id' | 'shop_domain'>

/** Every store's secrets after the id `after`, in the order of their ids. */
export function secretsAfter(db: Queries, after: string | null, limit: number): Promise<OwnedSecretRow[]> {
  return db
    .selectFrom('store_secrets as secret')
    .innerJoin('stores as store', 'store.id', 'secret.store_id')
    .selectAll('secret')
    .select(['store.merchant_id', 'store.shop_domain'])
    .$if(after !== null, (query) => query.where('secret.id', '>', after ?? ''))
    .orderBy('secret.id')
    .limit(limit)
    .execute()
}

export async function insertSecret(tx: Tx, row: StoreSecretRow): Promise<void> {
  await tx.insertInto('store_secrets').values(row).execute()
}

/** Replaces a secret's row, unless it changed since it was read as `sealed`; whether it did. */
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

export function storesById(db: Queries, storeIds: readonly string[]): Promise<StoreRow[]> {
  if (storeIds.length === 0) return Promise.resolve([])
  return db.selectFrom('stores').selectAll().where('id', 'in', storeIds).execute()
}

/** The host names that these stores' orders have shown. */
export function hostsOfStores(
  db: Queries | Tx,
  storeIds: readonly string[],
): Promise<{ store_id: string; host: string }[]> {
  if (storeIds.length === 0) return Promise.resolve([])
  return db
    .selectFrom('store_hosts')
    .select(['store_id', 'host'])
    .where('store_id', 'in', storeIds)
    .orderBy('host')
    .execute()
}

export async function insertHosts(
  tx: Tx,
  rows: readonly { store_id: string; host: string; created_at: number }[],
): Promise<void> {
  if (rows.length === 0) return
  await tx
    .insertInto('store_hosts')
    .values([...rows])
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
