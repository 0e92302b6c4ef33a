import type { z } from 'zod'
import { idParam } from '../../shared/schemas/common.ts'
import type { listSalesInput } from '../../shared/schemas/sales.ts'
import { slugIn } from '../links/slug.rule.ts'
import { decodeCursor, encodeCursor, type Page, pageOf } from '../platform/api/page.ts'
import { periodOf } from '../platform/clock.ts'
import type { OwnScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { storeIdsOfMerchant } from '../stores/stores.service.ts'
import { type NamedSale, withNames } from './sale-explanation.service.ts'
import { endOfWindow, findSales, linkIdOfSlug, type SaleFilter } from './sales.store.ts'

/** How many of the caller's sales one call reads for filters that no index serves. */
const WINDOW = 10_000

/**
 * Own sales, newest first. An index finds a merchant's orders by id or name, the sales of a billing cycle, and unfiltered lists. Every
 * other filter reads a window of the caller's sales, so a page can have fewer items than the limit and a cursor that leads on. Refuses
 * another list's cursor with `validation_failed`.
 */
export async function listSales(
  platform: Platform,
  scope: OwnScope,
  query: z.output<typeof listSalesInput>,
  window = WINDOW,
): Promise<Page<NamedSale>> {
  const db = platform.database.reader
  const { limit, cursor, from, to, affiliate_link_slug: slug, ...columns } = query
  const filter: Omit<SaleFilter, 'limit'> = {
    columns,
    ...periodOf({ from, to }),
    before: decodeCursor(cursor, idParam),
  }
  if (slug !== undefined) {
    const linkId = await linkIdOfSlug(db, slugIn(slug) ?? '')
    if (linkId === undefined) return { items: [], next_cursor: null }
    filter.columns = { ...columns, link_id: linkId }
  }
  const { store_id, order_id, order_name, billing_cycle_id } = columns
  const merchantId = 'merchantId' in scope ? scope.merchantId : null
  const byOrder = merchantId !== null && (order_id ?? order_name) !== undefined
  if (byOrder) filter.storeIds = store_id ? [store_id] : await storeIdsOfMerchant(db, merchantId)
  const byCycle = merchantId !== null && billing_cycle_id !== undefined
  const isFiltered = Object.values(filter.columns ?? {}).some((value) => value !== undefined)
  const end = isFiltered && !byOrder && !byCycle ? await endOfWindow(db, scope, filter, window) : undefined
  const rows = await findSales(db, scope, { ...filter, since: end, limit: limit + 1 })
  const { items, next_cursor } = pageOf(rows, limit, (last) => encodeCursor(last.id))
  return {
    items: await withNames(platform, items),
    next_cursor: next_cursor ?? (end === undefined ? null : encodeCursor(end)),
  }
}
