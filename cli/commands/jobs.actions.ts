import { type ExportJobRow, listExports, wireJob } from '../../server/exports/exports.service.ts'
import { pageById } from '../../server/platform/api/page.ts'
import type { PageOptions } from '../command.ts'
import { reads } from '../context.ts'
import { nameOf, peopleOf } from '../lists.ts'
import { wireTime } from '../terminal/output.ts'

export const list = reads(async ({ platform, out }, options: PageOptions) => {
  const page = await pageById(options, (request) => listExports(platform.database.reader, request))
  const person = await peopleOf(platform, page.items, (job) => job.user_id)
  out.showPage(page, {
    columns: [
      { title: 'Started by', flexible: true, cell: (job) => nameOf(person(job.user_id)) },
      { title: 'What', cell: (job) => `${job.resource} as ${job.format}` },
      { title: 'State', cell: (job) => job.state },
      { title: 'Rows', right: true, cell: rowsText },
      out.moment('Begun', (job) => job.created_at),
      out.moment('Ended', (job) => job.finished_at),
      { title: 'Error', flexible: true, cell: (job) => job.error },
      { title: 'Id', cell: (job) => job.id },
    ],
    wire: (job) => ({
      ...wireJob(platform, job),
      user: person(job.user_id),
      resource: job.resource,
      format: job.format,
      from: wireTime(job.from_at),
      to: wireTime(job.to_at),
      attempts: job.attempts,
      rows_total: job.rows_total,
    }),
  })
})

function rowsText({ rows_done, rows_total, state }: ExportJobRow): string {
  if (state === 'succeeded' || rows_total === null) return rows_done.toLocaleString('en')
  return `${rows_done.toLocaleString('en')} of ${rows_total.toLocaleString('en')}`
}
