import {
  affiliateLink,
  linkPage,
  listLinksInput,
  resolvedLink,
  resolveLinkInput,
  setCouponInput,
} from '../../shared/schemas/links.ts'
import { mapPage } from '../platform/api/page.ts'
import { type Actor, procedure, publicProcedure, router } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { readReplica } from '../platform/replica-reads.ts'
import { couponCodesOf, setCoupon } from './coupons.service.ts'
import { resolveLink, type ShownLink, wireResolved } from './links.service.ts'
import { listLinks, wireLink, withEarnings } from './listed-links.service.ts'

export const linksRouter = router({
  resolve: publicProcedure({
    acceptsToken: true,
    rest: { method: 'GET', path: '/affiliate-links/:slug', ignoresUnknownQuery: 'all' },
    summary: 'Look up a shared link',
    description:
      'The creator and offer of a link. Stores no click; following `url` does. With a token of its merchant, its creator or an admin: `coupon_code` too.',
    errors: ['not_found'],
  })
    .input(resolveLinkInput)
    .output(resolvedLink)
    .query(async ({ ctx, input }) => {
      const read = (platform: Platform) => resolveLink(platform, input.slug)
      const link = await (ctx.actor ? read(ctx.platform) : readReplica(ctx.platform, read))
      const resolved = wireResolved(ctx.platform, link)
      if (!isParty(ctx.actor, link)) return resolved
      const codes = await couponCodesOf(ctx.platform.database.reader, [link.id])
      return { ...resolved, coupon_code: codes.get(link.id) ?? null }
    }),

  list: procedure(['creator'], {
    rest: { method: 'GET', path: '/affiliate-links' },
    summary: 'List own links with their earnings',
  })
    .input(listLinksInput)
    .output(linkPage)
    .query(async ({ ctx, input }) => {
      const page = await listLinks(ctx.platform, { creatorId: ctx.actor.userId }, input)
      return mapPage(page, (link) => wireLink(ctx.platform, link))
    }),

  setCoupon: procedure(['merchant'], {
    rest: { method: 'PATCH', path: '/affiliate-links/:slug' },
    summary: 'Give a link a coupon code, or take it away',
    description:
      'Orders of the store with this discount code are credited to the link from now on, before any click. Create the code in the store as well. `null` takes the code away; orders created before keep it.',
    errors: ['not_found', 'coupon_taken', 'quota_exceeded'],
    details: { quota_exceeded: 'At most 200 new coupon codes within 24 hours. Try again later.' },
  })
    .input(setCouponInput)
    .output(affiliateLink)
    .mutation(async ({ ctx, input }) => {
      const { slug, coupon_code: code } = input
      const link = await setCoupon(ctx.platform, { slug, code, actor: ctx.actor.userId })
      const [shown] = await withEarnings(ctx.platform, [link])
      if (!shown) throw new Error('a link was lost')
      return wireLink(ctx.platform, shown)
    }),
})

function isParty(actor: Actor | null, link: ShownLink): boolean {
  if (actor === null) return false
  return actor.role === 'admin' || [link.creatorId, link.merchantId].includes(actor.userId)
}
