import { CURRENCY, formatMoney, type Paisa } from '../../shared/money.ts'
import { basisPointsToPercent } from '../../shared/rates.ts'
import type { AffiliateLink } from '../../shared/schemas/links.ts'
import { countVisits } from '../clicks/clicks.service.ts'
import { couponCodesOf } from '../links/coupons.service.ts'
import {
  type LinkRecord,
  linkRecordOf,
  linkUrl,
  type ShownLink,
  shownLinks,
  wireLinkedOffer,
} from '../links/links.service.ts'
import { type LinkScope, linksOf } from '../links/links.store.ts'
import { productHostOf } from '../offers/product-url.rule.ts'
import { type Page, type PageRequest, pageById } from '../platform/api/page.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import { linkEarnings } from '../sales/sales.service.ts'

/** A link with its visits and earnings. */
export interface ListedLink extends ShownLink {
  /** In force now. */
  couponCode: string | null
  clicks: number
  uniqueClicks: number
  acceptedSales: number
  commissionEarned: Paisa
}

/** A creator's or a merchant's own links or, for the operator, any, newest first. Refuses another list's cursor with `validation_failed`. */
export async function listLinks(
  platform: Platform,
  scope: LinkScope,
  query: PageRequest,
): Promise<Page<ListedLink>> {
  const { reader } = platform.database
  const page = await pageById(query, ({ before, limit }) => linksOf(reader, scope, before, limit))
  return { ...page, items: await withEarnings(platform, page.items.map(linkRecordOf)) }
}

/** Links with what they have earned so far, in the given order. */
export async function withEarnings(
  platform: Platform,
  records: readonly LinkRecord[],
): Promise<ListedLink[]> {
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

/** A link as its creator and its merchant see it. */
export function wireLink(platform: Platform, link: ListedLink): AffiliateLink {
  return {
    id: link.id,
    slug: link.slug,
    url: linkUrl(platform, link.slug),
    active: link.active,
    coupon_code: link.couponCode,
    offer: wireLinkedOffer(link.offer),
    creator: link.creator,
    product_host: productHostOf(link.offer.product_url),
    commission_rate: basisPointsToPercent(link.commission_rate),
    offer_commission_rate: link.offer_rate === null ? null : basisPointsToPercent(link.offer_rate),
    attribution_window_days: link.attribution_window_days,
    product_ids: link.product_ids,
    clicks: link.clicks,
    unique_clicks: link.uniqueClicks,
    accepted_sales: link.acceptedSales,
    commission_earned: formatMoney(link.commissionEarned),
    currency: CURRENCY,
    created_at: isoTime(link.created_at),
    ended_at: link.ended_at === null ? null : isoTime(link.ended_at),
    end_reason: link.end_reason,
  }
}
