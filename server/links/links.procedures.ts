import { resolvedLink, resolveLinkInput } from '../../shared/schemas/links.ts'
import { type Actor, publicProcedure } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { readReplica } from '../platform/replica-reads.ts'
import { couponCodesOf } from './coupons.service.ts'
import { resolveLink, type ShownLink, wireResolved } from './links.service.ts'

export const linkProcedures = {
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
}

function isParty(actor: Actor | null, link: ShownLink): boolean {
  if (actor === null) return false
  return actor.role === 'admin' || [link.creator_id, link.merchant_id].includes(actor.userId)
}
