import type { Command } from 'commander'
import type { App } from '../../server/app.ts'
import type { EventRow } from '../../server/inbox/inbox.service.ts'
import { exampleText, groupOf, oneOf, wholeNumber } from '../command.ts'
import { type CommandContext, READS, withApp } from '../context.ts'
import { eventLine, eventPairs, outcomeText, wireEvent } from '../event-report.ts'
import { Failure } from '../failures.ts'
import { printable } from '../table.ts'

interface ListenOptions {
  source?: EventRow['source']
  count?: number
}

/** What an operator does with one signed event: `webhooks show`, `retry` and `listen`. */
export function addWebhookEventCommands(program: Command): void {
  const group = groupOf(program, 'webhooks')
  group
    .command('show')
    .description('one event: where it came from, what became of it, and its body if asked for')
    .argument('<event>', 'its id, or its sender’s delivery id')
    .option('--body', 'the raw body too; it holds the buyer’s data')
    .addHelpText('after', exampleText('webhooks show 019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e --body'))
    .action((event: string, options: { body?: boolean }, command: Command) =>
      show(event, options.body ?? false, command),
    )
  group
    .command('retry')
    .description('have an event that was set aside, or waits for its next try, tried at once')
    .argument('<event>', 'its id, or its sender’s delivery id')
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText(
      'after',
      exampleText("webhooks retry 019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e --reason 'store is back'"),
    )
    .action((event: string, options: { reason?: string }, command: Command) =>
      retry(event, options.reason, command),
    )
  group
    .command('listen')
    .description(
      'print events as they arrive and as they are settled, until Ctrl-C; with --json one document a line',
    )
    .option('--source <source>', 'store or processor', oneOf(['store', 'processor']))
    .option('--count <n>', 'end after so many lines', wholeNumber(1, 1_000_000))
    .addHelpText('after', exampleText('webhooks listen', 'webhooks listen --source processor --json'))
    .action((options: ListenOptions, command: Command) => listen(options, command))
}

type Opened = CommandContext & { app: App }

function show(name: string, withBody: boolean, command: Command): Promise<void> {
  return withApp(
    command,
    async (context) => {
      const { app, out } = context
      const { eventBody } = await import('../../server/inbox/event-desk.service.ts')
      const { row, domain } = await eventNamed(context, name)
      const body = withBody ? await eventBody(app.platform, row.id) : null
      const document = {
        ...wireEvent(row, domain),
        body_sha256: row.body_hash,
        ...(withBody ? { body: body?.toString('utf8') ?? null } : {}),
      }
      out.show(document, () => [
        ...out.pairs(eventPairs(out, row, domain)),
        ...(withBody ? ['', body === null ? 'The body is past the retention time.' : bodyText(body)] : []),
      ])
    },
    READS,
  )
}

function bodyText(body: Buffer): string {
  return body.toString('utf8').split('\n').map(printable).join('\n')
}

async function eventNamed(
  { app, out }: Opened,
  name: string,
): Promise<{ row: EventRow; domain: string | null }> {
  const { findEventsNamed } = await import('../../server/inbox/event-desk.service.ts')
  const rows = await findEventsNamed(app.platform, name)
  const [row] = rows
  if (!row) {
    throw new Failure(`There is no event ${name}. See "affiliate webhooks events".`, { code: 'not_found' })
  }
  const domains = await domainsOf(app, rows)
  if (rows.length === 1) return { row, domain: domains.get(row.scope) ?? null }
  throw new Failure(`${name} stands for ${rows.length} events. Give the id of one.`, {
    extra: { candidates: rows.map((one) => wireEvent(one, domains.get(one.scope) ?? null)) },
    lines: rows.map((one) =>
      printable(
        `  ${one.id}  ${domains.get(one.scope) ?? one.scope}  ${one.state}  ${out.time(one.received_at)}`,
      ),
    ),
  })
}

async function domainsOf(app: App, rows: readonly EventRow[]): Promise<Map<string, string>> {
  const { shopDomainsOf } = await import('../../server/stores/store-names.service.ts')
  const stores = rows.filter((row) => row.source === 'store').map((row) => row.scope)
  return shopDomainsOf(app.database.reader, [...new Set(stores)])
}

async function retry(name: string, reasonText: string | undefined, command: Command): Promise<void> {
  const { readText } = await import('../arguments.ts')
  const reason = reasonText === undefined ? null : await readText('--reason', reasonText, 2000)
  await withApp(command, async (context) => {
    const { app, out } = context
    const { retryEvent } = await import('../../server/inbox/event-desk.service.ts')
    const { row, domain } = await eventNamed(context, name)
    const due = await retryEvent(app.platform, row.id, reason)
    out.show(wireEvent(due, domain), () => [
      `The running service tries it again. Last time: ${printable(outcomeText(row))}`,
      `See what comes of it: affiliate webhooks show ${row.id}`,
    ])
  })
}

const LOOK_EVERY_MS = 300

function listen(options: ListenOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { EventWatch } = await import('../../server/inbox/event-desk.service.ts')
      const { setTimeout: pause } = await import('node:timers/promises')
      const watch = new EventWatch(app.platform)
      const end = new AbortController()
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end.abort())
      if (!out.json) process.stderr.write('Listening; Ctrl-C ends it.\n')
      let left = options.count ?? Number.POSITIVE_INFINITY
      while (!end.signal.aborted) {
        const rows = (await watch.news()).filter(({ source }) => !options.source || source === options.source)
        const domains = await domainsOf(app, rows)
        for (const row of rows.slice(0, left)) {
          const domain = domains.get(row.scope) ?? null
          const line = out.json ? JSON.stringify(wireEvent(row, domain)) : eventLine(out, row, domain)
          process.stdout.write(`${line}\n`)
        }
        left -= rows.length
        if (left <= 0) return
        await pause(LOOK_EVERY_MS, undefined, { signal: end.signal }).catch(() => undefined)
      }
    },
    READS,
  )
}
