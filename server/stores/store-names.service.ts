import type { Queries } from '../platform/database.ts'
import { isId } from '../platform/ids.ts'
import { claimsOnDomain, storesById } from './stores.store.ts'

/** Host names by store id, some hundreds at most; removed stores keep theirs, since their sales stay. */
export async function shopDomainsOf(db: Queries, storeIds: readonly string[]): Promise<Map<string, string>> {
  const stores = await storesById(db, [...new Set(storeIds.filter(isId))])
  return new Map(stores.map((store) => [store.id, store.shop_domain]))
}

/** The stores that an operator means by an id or a host name, removed ones too; empty when there is none. */
export async function storeIdsOf(db: Queries, idOrDomain: string): Promise<string[]> {
  const text = idOrDomain.trim().toLowerCase()
  const stores = isId(text) ? await storesById(db, [text]) : await claimsOnDomain(db, text)
  return stores.map((store) => store.id)
}
