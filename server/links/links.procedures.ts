import { linkPage, listLinksInput, resolvedLink, resolveLinkInput } from '../../shared/schemas/links.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure, publicProcedure, router } from '../platform/api/procedure.ts'
import { resolveLink, wireResolved } from './links.service.ts'
import { listLinks, wireLink } from './listed-links.service.ts'

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
      const page = await listLinks(ctx.platform, { creatorId: ctx.actor.userId }, input)
      return mapPage(page, (link) => wireLink(ctx.platform, link))
    }),
})
