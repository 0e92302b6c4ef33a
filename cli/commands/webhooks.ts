import type { Command } from 'commander'
import type { EventRow } from '../../server/inbox/inbox.service.ts'
import { addGroup, DEFAULT_ROWS, exampleText, oneOf, rowLimit } from '../command.ts'
import { openContext, withApp } from '../context.ts'
import { Failure } from '../failures.ts'
import { wireTime } from '../output.ts'
import type { ReplayOptions } from '../replay.ts'

interface EventsOptions {
  state?: EventRow['state']
  source?: EventRow['source']
  limit: number
}

export function addWebhookCommands(program: Command): void {
  const group = addGroup(program, 'webhooks', 'signed events: what came in, and fixtures to send')
  group
    .command('fixtures')
    .description('the events that can be sent, and what each must lead to')
    .addHelpText('after', exampleText('webhooks fixtures'))
    .action((_options: object, command: Command) => fixtures(command))
  group
    .command('replay')
    .description(
      'sign a fixture with the real secret, send it to the running service, and show what it led to',
    )
    .argument('<fixture>', 'a name from "webhooks fixtures", or all: every order')
    .option('--url <url>', 'the service; where HOST and PORT say unless given')
    .option(
      '--link <slug>',
      'follow this affiliate link first: its click, creator and product fill the order',
    )
    .option('--store <domain>', "the store that sends; the link's merchant's one unless given")
    .option('--event-id <id>', 'the delivery id; a new one unless given (the same again is a redelivery)')
    .option(
      '--cycle <id>',
      'the billing cycle that a processor event is about; the newest fitting one unless given',
    )
    .option(
      '--payout <id>',
      'the payout that a processor event is about; the newest fitting one unless given',
    )
    .addHelpText(
      'after',
      exampleText('webhooks replay path-landing-site --link 4fJq2mXw', 'webhooks replay payout-failed'),
    )
    .action((fixture: string, options: ReplayOptions, command: Command) => replay(fixture, options, command))
  group
    .command('events')
    .description('the newest events that came in, and what became of them')
    .option(
      '--state <state>',
      'pending, done, ignored or set_aside',
      oneOf(['pending', 'done', 'ignored', 'set_aside']),
    )
    .option('--source <source>', 'store or processor', oneOf(['store', 'processor']))
    .option('--limit <n>', 'how many at most', rowLimit, DEFAULT_ROWS)
    .addHelpText('after', exampleText('webhooks events --state set_aside'))
    .action((options: EventsOptions, command: Command) => events(options, command))
}

async function fixtures(command: Command): Promise<void> {
  const { out } = await openContext(command)
  const { expectedEvent, expectedSale, readFixtures } = await import('../fixture-files.ts')
  const { storeSales, processor } = await readFixtures()
  const titles = [
    { title: 'Fixture' },
    { title: 'What it is', flexible: true },
    { title: 'Must lead to', flexible: true },
  ]
  out.show({ store_sales: storeSales, processor }, () => [
    out.heading('Orders (orders/paid), on the terms that the manifest names'),
    ...out.table(
      titles,
      storeSales.map((fixture) => [fixture.name, fixture.title, expectedSale(fixture)]),
    ),
    '',
    out.heading('Events of the processor'),
    ...out.table(
      [...titles.slice(0, 2), { title: 'Needs' }, { title: 'Must lead to', flexible: true }],
      processor.map((fixture) => [fixture.name, fixture.title, fixture.needs, expectedEvent(fixture)]),
    ),
    '',
    'Send one: affiliate webhooks replay path-landing-site --link SLUG',
  ])
}

function replay(fixture: string, options: ReplayOptions, command: Command): Promise<void> {
  return withApp(command, async ({ app, out }) => {
    const { replayFixtures } = await import('../replay.ts')
    const { replayLines, wireReplay } = await import('../replay-report.ts')
    const replays = await replayFixtures(app, fixture, options, (text) => out.progress(text))
    out.endProgress()
    out.show({ items: replays.map(wireReplay) }, () => replayLines(replays, out))
    const refused = replays.filter(({ answer }) => answer.status >= 300)
    if (refused.length > 0)
      throw new Failure(`The service refused ${refused.map(({ fixture }) => fixture).join(', ')}.`)
    const undecided = replays.filter(({ event }) => event === null || event.state === 'pending')
    if (undecided.length > 0) {
      throw new Failure(
        `Not decided so far: ${undecided.map((one) => one.fixture).join(', ')}. See "affiliate webhooks events".`,
      )
    }
  })
}

function events(options: EventsOptions, command: Command): Promise<void> {
  return withApp(command, async ({ app, out }) => {
    const { listEvents } = await import('../../server/inbox/inbox.service.ts')
    const { shopDomainsOf } = await import('../../server/stores/store-names.service.ts')
    const rows = await listEvents(app.platform, options)
    const domains = await shopDomainsOf(
      app.database.reader,
      rows.map((row) => row.scope),
    )
    const items = rows.map((row) => wireEvent(row, domains.get(row.scope) ?? null))
    out.show({ items }, () =>
      out.table(
        [
          { title: 'Received' },
          { title: 'From', flexible: true },
          { title: 'Topic' },
          { title: 'State' },
          { title: 'Tries', right: true },
          { title: 'What became of it', flexible: true },
          { title: 'Id' },
        ],
        rows.map((row) => [
          out.time(row.received_at),
          domains.get(row.scope) ?? row.scope,
          row.topic ?? '–',
          row.state,
          String(row.attempts),
          row.reason ?? resultText(row.result),
          row.id,
        ]),
      ),
    )
  })
}

function resultText(result: string | null): string {
  if (result === null) return '–'
  return Object.entries(JSON.parse(result) as Record<string, unknown>)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}

function wireEvent(row: EventRow, shopDomain: string | null) {
  return {
    id: row.id,
    source: row.source,
    store: row.source === 'store' ? { id: row.scope, shop_domain: shopDomain } : null,
    delivery_id: row.delivery_id,
    conflicting: row.conflict_hash !== '',
    topic: row.topic,
    state: row.state,
    attempts: row.attempts,
    reason: row.reason,
    result: row.result === null ? null : JSON.parse(row.result),
    received_at: wireTime(row.received_at),
    next_attempt_at: row.state === 'pending' ? wireTime(row.next_attempt_at) : null,
    finished_at: wireTime(row.finished_at),
  }
}
