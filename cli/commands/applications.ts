import type { Command } from 'commander'
import type { ShownApplication } from '../../server/applications/applications.service.ts'
import { addGroup, exampleText, oneOf } from '../command.ts'
import { READS, withApp } from '../context.ts'
import { addPageOptions, type PageOptions } from '../pages.ts'
import { nameOf, type Person, peopleOf, scopeOf } from '../people.ts'
import type { Output } from '../terminal/output.ts'

interface ListOptions extends PageOptions {
  merchant?: string
  creator?: string
  offer?: string
  status?: ShownApplication['status']
}

export function addApplicationCommands(program: Command): void {
  const group = addGroup(program, 'applications', "creators' applications to offers")
  addPageOptions(
    group
      .command('list')
      .description('the newest applications, decided or not')
      .option('--merchant <user>', "to one merchant's offers, by id or e-mail")
      .option('--creator <user>', 'of one creator, by id or e-mail')
      .option('--offer <id>', 'to one offer')
      .option(
        '--status <status>',
        'pending, approved or rejected',
        oneOf(['pending', 'approved', 'rejected']),
      ),
  )
    .addHelpText('after', exampleText('applications list --status pending'))
    .action((options: ListOptions, command: Command) => list(options, command))
}

function list(options: ListOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listEveryApplication, wireApplication } = await import(
        '../../server/applications/applications.service.ts'
      )
      const { offerRecords } = await import('../../server/offers/offers.service.ts')
      const { items: rows, next_cursor } = await listEveryApplication(
        app.platform,
        await scopeOf(app, options),
        options,
      )
      const person = await peopleOf(
        app,
        rows.flatMap((row) => [row.creator_id, row.merchant_id]),
      )
      const offers = await offerRecords(
        app.platform,
        app.database.reader,
        rows.map((row) => row.offer_id),
      )
      const items = rows.map((row) => ({
        ...wireApplication(app.platform, row),
        creator: person(row.creator_id),
        merchant: person(row.merchant_id),
      }))
      const titleOf = (row: ShownApplication) => offers.get(row.offer_id)?.title ?? row.offer_id
      out.showPage({ items, next_cursor }, () => applicationTable(out, rows, person, titleOf))
    },
    READS,
  )
}

function applicationTable(
  out: Output,
  rows: readonly ShownApplication[],
  person: (id: string) => Person,
  titleOf: (row: ShownApplication) => string,
): string[] {
  return out.table(
    [
      { title: 'Made' },
      { title: 'Creator', flexible: true },
      { title: 'Offer', flexible: true },
      { title: 'Status' },
      { title: 'Link' },
    ],
    rows.map((row) => [
      out.shortTime(row.created_at),
      nameOf(person(row.creator_id)),
      titleOf(row),
      row.status,
      row.link?.slug ?? '–',
    ]),
  )
}
