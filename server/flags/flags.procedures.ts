import { flagPage, listFlaggedInput } from '../../shared/schemas/admin.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure } from '../platform/api/procedure.ts'
import { listFlags, wireFlag } from './flags.service.ts'

/** The queue, for admins. */
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
}
