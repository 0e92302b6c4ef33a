import {
  type FlagWire,
  flag,
  flagPage,
  listFlaggedInput,
  resolveFlagInput,
} from '../../shared/schemas/admin.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure } from '../platform/api/procedure.ts'
import { isoTime } from '../platform/clock.ts'
import { type FlagRow, listFlags, resolveFlag } from './flags.service.ts'

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
    .query(async ({ ctx, input }) => mapPage(await listFlags(ctx.platform, input), flagWire)),

  resolveFlag: procedure(['admin'], {
    rest: { method: 'POST', path: '/admin/flagged/:id/resolve' },
    summary: 'Resolve a flag',
    description:
      'Records what was found and done. Repeating the note changes nothing; another note is refused with `already_decided`.',
    errors: ['not_found', 'already_decided'],
  })
    .input(resolveFlagInput)
    .output(flag)
    .mutation(async ({ ctx, input }) =>
      flagWire(
        await resolveFlag(ctx.platform, { flagId: input.id, note: input.note, actor: ctx.actor.userId }),
      ),
    ),
}

function flagWire(row: FlagRow): FlagWire {
  return {
    id: row.id,
    kind: row.kind as FlagWire['kind'],
    severity: row.severity,
    subject_type: row.subject_type,
    subject_id: row.subject_id,
    summary: row.summary,
    evidence: JSON.parse(row.evidence),
    status: row.status,
    note: row.note,
    created_at: isoTime(row.created_at),
    resolved_at: row.resolved_at === null ? null : isoTime(row.resolved_at),
  }
}
