import { listInput } from '../../shared/schemas/common.ts'
import { affiliateLink, linkPage, setCouponInput } from '../../shared/schemas/links.ts'
import { COUPON_QUOTA, setCoupon } from '../links/coupons.service.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure } from '../platform/api/procedure.ts'
import { listLinks, wireLink, withEarnings } from './listed-links.service.ts'

/** What answers links with their visits and earnings. */
export const listedLinkProcedures = {
  list: procedure(['creator'], {
    rest: { method: 'GET', path: '/affiliate-links' },
    summary: 'List own links with their earnings',
  })
    .input(listInput)
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
    details: { quota_exceeded: COUPON_QUOTA.detail },
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
}
