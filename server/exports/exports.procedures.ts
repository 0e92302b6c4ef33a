import { idInput, listInput } from '../../shared/schemas/common.ts'
import { job, jobPage, startExportInput } from '../../shared/schemas/jobs.ts'
import { mapPage, pageById } from '../platform/api/page.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { periodOf } from '../platform/clock.ts'
import { getExport, listExports, startExport, wireJob } from './exports.service.ts'

export const jobsRouter = router({
  startExport: procedure(['merchant', 'creator', 'admin'], {
    rest: { method: 'POST', path: '/jobs/export', status: 202, location: '/jobs/:id' },
    creates: true,
    summary: 'Start an export',
    description:
      'Returns immediately; poll the job until its file is ready. The file has the rows of your lists, newest first; for an admin the rows of all users, with their owners. Creators cannot export billing cycles. CSV names nested fields with dots (`creator.id`) and puts an apostrophe before texts that a spreadsheet would evaluate as a formula; `excel` makes a CSV file that spreadsheets show right. NDJSON has the objects of the lists. Each user can have 5 unfinished exports; one runs at a time.',
    errors: ['conflict', 'not_found'],
    details: {
      conflict: '3 of your exports are not finished yet. Wait for one of them.',
      not_found: 'Billing cycle not found.',
    },
  })
    .input(startExportInput)
    .output(job)
    .mutation(async ({ ctx, input }) => {
      const { billing_cycle_id: billingCycleId, ...request } = input
      const row = await startExport(ctx.platform, ctx.actor, {
        ...request,
        billingCycleId,
        ...periodOf(input),
      })
      return wireJob(ctx.platform, row)
    }),

  list: procedure(['merchant', 'creator', 'admin'], {
    rest: { method: 'GET', path: '/jobs' },
    summary: 'List own jobs',
    description: 'Newest first. A job is listed for 30 days after its end.',
  })
    .input(listInput)
    .output(jobPage)
    .query(async ({ ctx: { platform, actor }, input }) => {
      const { reader } = platform.database
      const page = await pageById(input, (request) => listExports(reader, actor.userId, request))
      return mapPage(page, (row) => wireJob(platform, row))
    }),

  get: procedure(['merchant', 'creator', 'admin'], {
    rest: { method: 'GET', path: '/jobs/:id' },
    summary: 'Get a job',
    description: 'A job is available for 30 days after its end, its file for 7 days.',
    errors: ['not_found'],
  })
    .input(idInput)
    .output(job)
    .query(async ({ ctx, input }) =>
      wireJob(ctx.platform, await getExport(ctx.platform, ctx.actor.userId, input.id)),
    ),
})
