import type { Command } from 'commander'
import type { EventRow } from '../../../server/inbox/events.service.ts'
import { addGroup, exampleText, oneOf } from '../../command.ts'
import { openContext, READS, withApp } from '../../context.ts'
import { addPageOptions, type PageOptions, readPage } from '../../pages.ts'
import { addReprocessCommand } from './reprocess.ts'
import { addReplayCommand } from './webhook-replay.ts'

interface EventsOptions extends PageOptions {
  state?: EventRow['state']
  source?: EventRow['source']
}

export function addWebhookCommands(program: Command): void {
  const group = addGroup(program, 'webhooks', 'signed events: what came in, and fixtures to send')
  group
    .command('fixtures')
    .description('the events that can be sent, and what each must lead to')
    .addHelpText('after', exampleText('webhooks fixtures'))
    .action((_options: object, command: Command) => fixtures(command))
  addReplayCommand(group)
  addPageOptions(
    group
      .command('events')
      .description('the newest events that came in, and what became of them')
      .option(
        '--state <state>',
        'pending, done, ignored or set_aside',
        oneOf(['pending', 'done', 'ignored', 'set_aside']),
      )
      .option('--source <source>', 'store or processor', oneOf(['store', 'processor'])),
  )
    .addHelpText('after', exampleText('webhooks events --state set_aside'))
    .action((options: EventsOptions, command: Command) => events(options, command))
  addReprocessCommand(group)
}

async function fixtures(command: Command): Promise<void> {
  const { out } = await openContext(command)
  const { expectedEvent, expectedSale, readFixtures } = await import('../../replay/fixture-files.ts')
  const { storeSales, processor } = await readFixtures()
  const titles = [
    { title: 'Fixture' },
    // Sentences: not cut, but printed as blocks where a terminal is too narrow for them.
    { title: 'What it is' },
    { title: 'Expected' },
  ]
  out.show({ store_sales: storeSales, processor }, () => [
    out.heading('Orders (orders/paid), on the terms that the manifest names'),
    ...out.table(
      titles,
      storeSales.map((fixture) => [fixture.name, fixture.title, expectedSale(fixture.expect)]),
    ),
    '',
    out.heading('Events of the processor'),
    ...out.table(
      [...titles.slice(0, 2), { title: 'Needs' }, { title: 'Expected' }],
      processor.map((fixture) => [fixture.name, fixture.title, fixture.needs, expectedEvent(fixture)]),
    ),
    '',
    'Send one: affiliate webhooks replay path-landing-site. Send all: affiliate webhooks replay --all',
  ])
}

function events(options: EventsOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listEvents } = await import('../../../server/inbox/events.service.ts')
      const { eventTable, sendersOf, wireEvent } = await import('./event-report.ts')
      const { state, source } = options
      const { items: rows, next_cursor } = await readPage(options, (request) =>
        listEvents(app.platform, { state, source, ...request }),
      )
      const senders = await sendersOf(app.database.reader, rows)
      const items = rows.map((row) => wireEvent(row, senders))
      out.showPage({ items, next_cursor }, () => eventTable(out, rows, senders))
    },
    READS,
  )
}
