import { getJobInput, job, startExportInput } from '../../shared/schemas/jobs.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { getExport, startExport } from './exports.service.ts'
import { wireJob } from './job-wire.ts'

export const jobsRouter = router({
  startExport: procedure(['merchant', 'creator', 'admin'], {
    rest: { method: 'POST', path: '/jobs/export', status: 202, location: '/jobs/:id' },
    summary: 'Start an export',
    description:
      "Answers at once; look at the job until its file is there. Own rows as the lists show them, newest first: for a merchant of own stores, cycles and offers, for a creator own ones, for an admin everybody's with their owners. Billing cycles are not for creators. CSV names nested fields with dots (`creator.id`) and puts an apostrophe before texts that a spreadsheet would take for a formula; NDJSON has the objects of the lists. At most 5 unfinished exports each, one after the other.",
    errors: ['conflict'],
  })
    .input(startExportInput)
    .output(job)
    .mutation(async ({ ctx, input }) => {
      const row = await startExport(ctx.platform, ctx.actor, {
        resource: input.resource,
        format: input.format,
        from: input.from === undefined ? null : Date.parse(input.from),
        to: input.to === undefined ? null : Date.parse(input.to),
      })
      return wireJob(ctx.platform, row)
    }),

  get: procedure(['merchant', 'creator', 'admin'], {
    rest: { method: 'GET', path: '/jobs/:id' },
    summary: 'How far an own job is',
    description: 'A job can be looked at for 30 days after its end; its file is kept for 7.',
    errors: ['not_found'],
  })
    .input(getJobInput)
    .output(job)
    .query(async ({ ctx, input }) =>
      wireJob(ctx.platform, await getExport(ctx.platform, ctx.actor.userId, input.id)),
    ),
})
