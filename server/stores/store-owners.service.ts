import type { Queries } from '../platform/database.ts'
import { ownersOf } from './stores.store.ts'

/** The merchant of each store, removed stores included: their late orders still belong to somebody. */
export function merchantsOfStores(db: Queries, storeIds: readonly string[]): Promise<Map<string, string>> {
  return ownersOf(db, storeIds)
}
