import type { Queries } from '../platform/database.ts'
import { type StoreRow, storesById } from './stores.store.ts'

/** Stores by id, removed ones too: their late orders still belong to their merchant. */
export async function storesOfEvents(
  db: Queries,
  storeIds: readonly string[],
): Promise<Map<string, StoreRow>> {
  const stores = await storesById(db, storeIds)
  return new Map(stores.map((store) => [store.id, store]))
}

/** The merchant of each store, removed ones too. */
export async function merchantsOfStores(
  db: Queries,
  storeIds: readonly string[],
): Promise<Map<string, string>> {
  const stores = await storesOfEvents(db, storeIds)
  return new Map([...stores].map(([id, store]) => [id, store.merchant_id]))
}
