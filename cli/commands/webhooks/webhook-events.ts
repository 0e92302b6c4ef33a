import type { Command } from 'commander'
import type { App } from '../../../server/app.ts'
import type { EventRow } from '../../../server/inbox/events.service.ts'
import { exampleText, groupOf, oneOf, wholeNumber } from '../../command.ts'
import { type CommandContext, confirm, READS, withApp } from '../../context.ts'
import { Failure, wrongUsage } from '../../failures.ts'
import { printJson, printLines } from '../../terminal/printable-text.ts'
import {
  type EventSenders,
  eventLine,
  eventPairs,
  outcomeText,
  sendersOf,
  wireEvent,
} from './event-report.ts'

interface ListenOptions {
  source?: EventRow['source']
  count?: number
}

interface RetryOptions {
  type?: string
  reason?: string
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
    .description('apply an event again that was set aside, or that waits for its next try')
    .argument('[event]', 'its id, or its sender’s delivery id')
    .option('--type <type>', 'instead: every processor event of this type that no rule mapped')
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText(
      'after',
      exampleText(
        "webhooks retry 019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e --reason 'store is back' --yes",
        "webhooks retry --type invoice.paid --reason 'added to PROCESSOR_EVENTS' --yes",
      ),
    )
    .action((event: string | undefined, options: RetryOptions, command: Command) =>
      retry(event, options, command),
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
      const { eventBody } = await import('../../../server/inbox/events.service.ts')
      const { row, senders } = await eventNamed(context, name)
      const body = withBody ? await eventBody(app.platform, row.id) : null
      const document = {
        ...wireEvent(row, senders),
        body_sha256: row.body_hash,
        ...(withBody ? { body: body?.toString('utf8') ?? null } : {}),
      }
      out.show(document, () => out.pairs(eventPairs(out, row, senders)))
      // Not wrapped: it may be copied.
      if (withBody && !out.json) {
        printLines(['', ...(body?.toString('utf8').split('\n') ?? ['The body is past the retention time.'])])
      }
    },
    READS,
  )
}

async function eventNamed(
  { app, out }: Opened,
  name: string,
): Promise<{ row: EventRow; senders: EventSenders }> {
  const { findEventsNamed } = await import('../../../server/inbox/events.service.ts')
  const rows = await findEventsNamed(app.platform, name)
  const [row] = rows
  if (!row) {
    throw new Failure(`There is no event ${name}. See "affiliate webhooks events".`, { code: 'not_found' })
  }
  const senders = await sendersOf(app.database.reader, rows)
  if (rows.length === 1) return { row, senders }
  throw new Failure(`${name} stands for ${rows.length} events. Give the id of one.`, {
    extra: { candidates: rows.map((one) => wireEvent(one, senders)) },
    lines: rows.map(
      (one) => `  ${one.id}  ${senders.domain(one) ?? one.scope}  ${one.state}  ${out.time(one.received_at)}`,
    ),
  })
}

async function retry(name: string | undefined, options: RetryOptions, command: Command): Promise<void> {
  const { readText } = await import('../../arguments.ts')
  const reason = options.reason === undefined ? null : await readText('--reason', options.reason, 2000)
  if ((name === undefined) === (options.type === undefined)) {
    throw wrongUsage('Name an event, or a type with --type.')
  }
  if (options.type !== undefined) return retryType(options.type, reason, command)
  await withApp(command, async (context) => {
    const { app, out } = context
    const { retryEvent } = await import('../../../server/inbox/events.service.ts')
    const { row, senders } = await eventNamed(context, name ?? '')
    // The others are refused below.
    if (row.state === 'pending' || row.state === 'set_aside') {
      await confirm(context, `Last time: ${outcomeText(row)}. Apply event ${row.id} again?`)
    }
    const due = await retryEvent(app.platform, row.id, reason)
    out.show(wireEvent(due, senders), () => [
      `The running service tries it again. Last time: ${outcomeText(row)}`,
      `See the result: affiliate webhooks show ${row.id}`,
    ])
  })
}

async function retryType(type: string, reason: string | null, command: Command): Promise<void> {
  await withApp(command, async (context) => {
    const { app, out } = context
    const { assertUnmapped, retryUnmapped } = await import('../../../server/inbox/set-aside.service.ts')
    await assertUnmapped(app.platform, type)
    await confirm(context, `Apply every event of type ${type} that no rule mapped?`)
    const retried = await retryUnmapped(app.platform, type, reason)
    out.show({ type, retried }, () => [
      `The running service tries ${retried} event${retried === 1 ? '' : 's'} of type ${type} again.`,
      'It must have been restarted with the corrected PROCESSOR_EVENTS.',
    ])
  })
}

const LOOK_EVERY_MS = 300

function listen(options: ListenOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { EventWatch } = await import('../../../server/inbox/events.service.ts')
      const { setTimeout: pause } = await import('node:timers/promises')
      const watch = new EventWatch(app.platform)
      const end = new AbortController()
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end.abort())
      if (!out.json) printLines(['Listening; Ctrl-C ends it.'], process.stderr)
      let left = options.count ?? Number.POSITIVE_INFINITY
      while (!end.signal.aborted) {
        const rows = (await watch.changes()).filter(
          ({ source }) => !options.source || source === options.source,
        )
        const senders = await sendersOf(app.database.reader, rows)
        for (const row of rows.slice(0, left)) {
          if (out.json) printJson(wireEvent(row, senders))
          else printLines([eventLine(out, row, senders)])
        }
        left -= rows.length
        if (left <= 0) return
        await pause(LOOK_EVERY_MS, undefined, { signal: end.signal }).catch(() => undefined)
      }
    },
    READS,
  )
}
