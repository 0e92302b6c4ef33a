import type { Paisa } from '../../shared/money.ts'
import { idParam } from '../../shared/schemas/common.ts'
import { countVisits } from '../clicks/clicks.service.ts'
import { decodeCursor, encodeCursor, type Page, pageOf } from '../platform/api/page.ts'
import type { Platform } from '../platform/platform.ts'
import { linkEarnings } from '../sales/sales.service.ts'
import { couponCodesOf } from './coupons.service.ts'
import { type LinkRecord, linkRecordOf, type ShownLink, shownLinks } from './links.service.ts'
import { linksOf } from './links.store.ts'

/** A creator's link with its visits and earnings. */
export interface CreatorLink extends ShownLink {
  /** In force now. */
  couponCode: string | null
  clicks: number
  uniqueClicks: number
  acceptedSales: number
  commissionEarned: Paisa
}

/** A creator's own links, newest first. Refuses another list's cursor with `validation_failed`. */
export async function listCreatorLinks(
  platform: Platform,
  creatorId: string,
  query: { limit: number; cursor?: string | undefined },
): Promise<Page<CreatorLink>> {
  const { reader } = platform.database
  const after = decodeCursor(query.cursor, idParam)
  const rows = await linksOf(reader, creatorId, after, query.limit + 1)
  const page = pageOf(rows, query.limit, (last) => encodeCursor(last.id))
  return { ...page, items: await withEarnings(platform, page.items.map(linkRecordOf)) }
}

/** Links with what they have earned so far, in the given order. */
export async function withEarnings(
  platform: Platform,
  records: readonly LinkRecord[],
): Promise<CreatorLink[]> {
  const { reader } = platform.database
  const ids = records.map((link) => link.id)
  const visits = await countVisits(reader, ids)
  const earnings = await linkEarnings(reader, ids)
  const codes = await couponCodesOf(reader, ids)
  return (await shownLinks(platform, records)).map((link) => ({
    ...link,
    couponCode: codes.get(link.id) ?? null,
    clicks: visits.get(link.id)?.all ?? 0,
    uniqueClicks: visits.get(link.id)?.unique ?? 0,
    acceptedSales: earnings.get(link.id)?.accepted_sales ?? 0,
    commissionEarned: earnings.get(link.id)?.commission ?? 0,
  }))
}
