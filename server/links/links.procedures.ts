import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { basisPointsToPercent } from '../../shared/rates.ts'
import {
  type AffiliateLink,
  linkPage,
  listLinksInput,
  type ResolvedLink,
  resolvedLink,
  resolveLinkInput,
} from '../../shared/schemas/links.ts'
import { productHostOf } from '../offers/product-url.rule.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure, publicProcedure, router } from '../platform/api/procedure.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import { type CreatorLink, listCreatorLinks } from './creator-links.service.ts'
import { linkUrl, resolveLink, type ShownLink } from './links.service.ts'

export const linksRouter = router({
  resolve: publicProcedure({
    rest: { method: 'GET', path: '/affiliate-links/:slug', ignoresUnknownQuery: true },
    summary: 'Look up a shared link',
    description: 'The creator and offer of a link. Stores no click; following `url` does.',
    errors: ['not_found'],
  })
    .input(resolveLinkInput)
    .output(resolvedLink)
    .query(async ({ ctx, input }) => wireResolved(ctx.platform, await resolveLink(ctx.platform, input.slug))),

  list: procedure(['creator'], {
    rest: { method: 'GET', path: '/affiliate-links' },
    summary: 'List own links with their earnings',
  })
    .input(listLinksInput)
    .output(linkPage)
    .query(async ({ ctx, input }) => {
      const page = await listCreatorLinks(ctx.platform, ctx.actor.userId, input)
      return mapPage(page, (link) => wireLink(ctx.platform, link))
    }),
})

function wireResolved(platform: Platform, link: ShownLink): ResolvedLink {
  return {
    slug: link.slug,
    url: linkUrl(platform, link.slug),
    active: link.active,
    creator: link.creator,
    offer: wireLinkedOffer(link.offer),
  }
}

function wireLink(platform: Platform, link: CreatorLink): AffiliateLink {
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
