import { flag, flagPage, listFlaggedInput, resolveFlagInput } from '../../shared/schemas/admin.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure } from '../platform/api/procedure.ts'
import { listFlags, resolveFlag, wireFlag } from './flags.service.ts'

/** What admins do with the queue. */
export const flagProcedures = {
  listFlagged: procedure(['admin'], {
    rest: { method: 'GET', path: '/admin/flagged' },
    summary: 'The fraud and moderation queue',
    description:
      'Newest first; open flags unless `status` is `resolved`. At most one flag of a kind and subject is open; later events are added to its evidence.',
  })
    .input(listFlaggedInput)
    .output(flagPage)
    .query(async ({ ctx, input }) => mapPage(await listFlags(ctx.platform, input), wireFlag)),

  resolveFlag: procedure(['admin'], {
    rest: { method: 'POST', path: '/admin/flagged/:id/resolve' },
    summary: 'Resolve a flag',
    description:
      'Records what was found and done. Repeating the note changes nothing; another note is refused with `already_decided`.',
    errors: ['not_found', 'already_decided'],
  })
    .input(resolveFlagInput)
    .output(flag)
    .mutation(async ({ ctx, input: { id: flagId, note } }) => {
      const { userId: actor } = ctx.actor
      return wireFlag(await resolveFlag(ctx.platform, { flagId, note, actor }))
    }),
}
