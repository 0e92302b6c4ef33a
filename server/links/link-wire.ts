import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { basisPointsToPercent } from '../../shared/rates.ts'
import type { AffiliateLink, ResolvedLink } from '../../shared/schemas/links.ts'
import { productHostOf } from '../offers/product-url.rule.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import { linkUrl, type ShownLink } from './links.service.ts'
import type { ListedLink } from './listed-links.service.ts'

/** A link for the public. */
export function wireResolved(platform: Platform, link: ShownLink): ResolvedLink {
  return {
    slug: link.slug,
    url: linkUrl(platform, link.slug),
    active: link.active,
    creator: link.creator,
    offer: wireLinkedOffer(link.offer),
  }
}

/** A link as its creator sees it. */
export function wireLink(platform: Platform, link: ListedLink): AffiliateLink {
  return {
    id: link.id,
    slug: link.slug,
    url: linkUrl(platform, link.slug),
    active: link.active,
    offer: wireLinkedOffer(link.offer),
    product_host: productHostOf(link.offer.product_url),
    commission_rate: basisPointsToPercent(link.commissionRate),
    attribution_window_days: link.attributionWindowDays,
    product_ids: link.productIds,
    clicks: link.clicks,
    unique_clicks: link.uniqueClicks,
    accepted_sales: link.acceptedSales,
    commission_earned: formatMoney(link.commissionEarned),
    currency: CURRENCY,
    created_at: isoTime(link.createdAt),
  }
}

function wireLinkedOffer({ id, title, category, niche, status, merchant }: ShownLink['offer']) {
  return { id, title, category, niche, status, merchant }
}
