import { writeFile } from 'node:fs/promises'
import { getCycle } from '../../server/billing/billing.service.ts'
import { mayExport } from '../../server/exports/export-columns.rule.ts'
import { type ExportJobRow, listExports, wireJob } from '../../server/exports/exports.service.ts'
import { exportParts } from '../../server/exports/run-export.service.ts'
import { OPERATOR, recordAudit } from '../../server/flags/audit.service.ts'
import { pageById } from '../../server/platform/api/page.ts'
import { findUser } from '../../server/users/users.service.ts'
import type { ExportFormat, ExportResource } from '../../shared/schemas/jobs.ts'
import { readMoment } from '../arguments.ts'
import type { PageOptions } from '../command.ts'
import { reads, writes } from '../context.ts'
import { Failure } from '../failures.ts'
import { nameOf, peopleOf } from '../lists.ts'
import { wireTime } from '../terminal/output.ts'

export const list = reads(async ({ platform, out }, options: PageOptions) => {
  const page = await pageById(options, (request) => listExports(platform.database.reader, null, request))
  const person = await peopleOf(platform, page.items, (job) => job.user_id)
  out.showPage(page, {
    columns: [
      { title: 'What', cell: (job) => `${job.resource} as ${job.format}${job.excel ? ' for Excel' : ''}` },
      { title: 'State', cell: (job) => job.state },
      { title: 'Started by', flexible: true, cell: (job) => nameOf(person(job.user_id)) },
      { title: 'Rows', right: true, cell: rowsText },
      { title: 'Error', flexible: true, cell: (job) => job.error },
      out.moment('Begun', (job) => job.created_at),
      out.moment('Ended', (job) => job.finished_at),
      { title: 'Id', cell: (job) => job.id },
    ],
    none: 'No exports.',
    wire: (job) => ({
      ...wireJob(platform, job),
      user: person(job.user_id),
      excel: job.excel === 1,
      billing_cycle_id: job.billing_cycle_id,
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

interface ExportOptions {
  user?: string
  format: ExportFormat
  excel?: boolean
  cycle?: string
  from?: string
  to?: string
}

export const exportFile = writes(
  async ({ platform, config, out }, resource: ExportResource, file: string, options: ExportOptions) => {
    const { format, excel = false, cycle = null } = options
    const user = options.user === undefined ? null : await findUser(platform, options.user)
    const role = user?.role ?? 'admin'
    if (!mayExport(role, resource))
      throw new Failure('Creators have no billing cycles to export. Name a merchant with --user.')
    if (cycle !== null) {
      const found = await getCycle(platform.database.reader, cycle)
      if (!found || (user !== null && found.merchant_id !== user.id))
        throw new Failure(`Billing cycle ${cycle} not found.`, { code: 'not_found' })
    }
    const content = {
      user_id: user?.id ?? OPERATOR,
      role,
      resource,
      format,
      excel: excel ? 1 : null,
      billing_cycle_id: cycle,
      from_at: readMoment(options.from, config),
      to_at: readMoment(options.to, config),
    }
    await platform.database.transaction((tx) =>
      recordAudit(platform, tx, {
        actor: OPERATOR,
        action: 'export.file',
        subjectType: 'export',
        subjectId: resource,
        after: { user: user?.id ?? null, format, cycle, from: content.from_at, to: content.to_at },
      }),
    )
    let rows = 0
    const parts = exportParts(platform, content, (done) => {
      rows = done
      out.progress(`${rows.toLocaleString('en')} rows written`)
    })
    await writeFile(file, parts, { flag: 'wx', mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
      if (error.syscall === undefined) throw error
      throw new Failure(
        error.code === 'EEXIST' ? `${file} exists. Name a new file.` : `${file}: ${error.message}`,
      )
    })
    out.show({ file, resource, format, excel, rows }, () => [
      `Wrote ${rows.toLocaleString('en')} ${rows === 1 ? 'row' : 'rows'} to ${file}.`,
    ])
  },
)
