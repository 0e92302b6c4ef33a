import type { Command } from 'commander'
import type { ExportJobRow } from '../../server/exports/exports.service.ts'
import { addGroup, exampleText } from '../command.ts'
import { READS, withApp } from '../context.ts'
import { addPageOptions, type PageOptions, readPage } from '../pages.ts'
import { nameOf, type Person, peopleOf } from '../people.ts'
import { wireTime } from '../terminal/output.ts'

export function addJobCommands(program: Command): void {
  const group = addGroup(program, 'jobs', 'exports that users started')
  addPageOptions(group.command('list').description('the newest jobs, how far they are, and what went wrong'))
    .addHelpText('after', exampleText('jobs list', 'jobs list --limit 10 --json'))
    .action((options: PageOptions, command: Command) => list(options, command))
}

function list(options: PageOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listExports } = await import('../../server/exports/exports.service.ts')
      const { items: jobs, next_cursor } = await readPage(options, (request) =>
        listExports(app.platform, request),
      )
      const person = await peopleOf(
        app,
        jobs.map((job) => job.user_id),
      )
      const items = jobs.map((job) => wireJob(job, person(job.user_id)))
      out.showPage({ items, next_cursor }, () =>
        out.table(
          [
            { title: 'Started by', flexible: true },
            { title: 'What' },
            { title: 'State' },
            { title: 'Rows', right: true },
            { title: 'Begun' },
            { title: 'Ended' },
            { title: 'Error', flexible: true },
            { title: 'Id' },
          ],
          jobs.map((job) => [
            nameOf(person(job.user_id)),
            `${job.resource} as ${job.format}`,
            job.state,
            rowsText(job),
            out.shortTime(job.created_at),
            out.shortTime(job.finished_at),
            job.error ?? '–',
            job.id,
          ]),
        ),
      )
    },
    READS,
  )
}

function rowsText({ rows_done, rows_total, state }: ExportJobRow): string {
  if (state === 'succeeded' || rows_total === null) return rows_done.toLocaleString('en')
  return `${rows_done.toLocaleString('en')} of ${rows_total.toLocaleString('en')}`
}

function wireJob(job: ExportJobRow, user: Person) {
  return {
    id: job.id,
    user,
    resource: job.resource,
    format: job.format,
    from: wireTime(job.from_at),
    to: wireTime(job.to_at),
    state: job.state,
    attempts: job.attempts,
    rows: job.rows_done,
    rows_total: job.rows_total,
    error: job.error,
    created_at: wireTime(job.created_at),
    finished_at: wireTime(job.finished_at),
    expires_at: wireTime(job.expires_at),
  }
}
