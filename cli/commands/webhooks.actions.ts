import type { Command } from 'commander'
import {
  type EventRow,
  EventWatch,
  eventBody,
  findEventsNamed,
  listEvents,
  retryEvent,
} from '../../server/inbox/events.service.ts'
import { originsOf } from '../../server/inbox/operator-deliveries.service.ts'
import { assertUnmapped, retryUnmapped } from '../../server/inbox/set-aside.service.ts'
import { pageById } from '../../server/platform/api/page.ts'
import { readAppKeys } from '../../server/platform/crypto/app-keys.ts'
import type { Queries } from '../../server/platform/database/database.ts'
import { shopDomainsOf, storeIdsOf } from '../../server/stores/stores.service.ts'
import { readMoment } from '../arguments.ts'
import type { PageOptions, ReasonOption } from '../command.ts'
import {
  type AppContext,
  assertMigrated,
  confirm,
  openContext,
  reads,
  readsDatabase,
  repeat,
  writes,
} from '../context.ts'
import { Failure } from '../failures.ts'
import { isTaken, type Replay } from '../replay/deliver.ts'
import { expectedEvent, expectedSale, readFixtures } from '../replay/fixture-files.ts'
import { replayEvents } from '../replay/replay.ts'
import { replayLines, wireReport } from '../replay/replay-report.ts'
import type { ReplayOptions } from '../replay/session.ts'
import { counted, fieldsText, type Output, wireTime } from '../terminal/output.ts'
import { printJson, printLines } from '../terminal/printable-text.ts'
import { showReprocessing } from './reprocess-output.ts'

export async function fixtures(_options: object, command: Command): Promise<void> {
  const { out } = openContext(command)
  const { storeSales, processor } = await readFixtures()
  const name = { title: 'Fixture', cell: (fixture: { name: string }) => fixture.name }
  const title = {
    title: 'What it is',
    flexible: true,
    least: 42,
    cell: (fixture: { title: string }) => fixture.title,
  }
  out.show({ store_sales: storeSales, processor }, () => [
    out.heading('Orders (orders/paid), on the terms that the manifest names'),
    ...out.table(storeSales, [
      name,
      title,
      { title: 'Expected', flexible: true, cell: ({ expect }) => expectedSale(expect) },
    ]),
    '',
    out.heading('Events of the processor'),
    ...out.table(processor, [
      name,
      title,
      { title: 'Expected', flexible: true, cell: expectedEvent },
      { title: 'Needs', cell: ({ needs }) => needs },
    ]),
    '',
    'Send one: affiliate webhooks replay path-landing-site. Send all: affiliate webhooks replay --all',
  ])
}

export const replay = writes(async ({ app, out }, names: string[], options: ReplayOptions) => {
  const report = await replayEvents(app, names, options, (text) => out.progress(text))
  out.show(wireReport(report), () => replayLines(report, out))
  const { replays, link } = report
  if (link && link.among > 1 && !out.json) {
    printLines(
      [`The clicks are on ${link.link.slug}, one of ${link.among} links; --link names another.`],
      process.stderr,
    )
  }
  /** Fails where any of them is so. */
  const refuse = (isWrong: (one: Replay) => boolean, message: (names: string) => string) => {
    const names = replays.filter(isWrong).map(({ fixture }) => fixture)
    if (names.length > 0) throw new Failure(message(names.join(', ')))
  }
  const isUnmet = ({ asExpected }: Replay) => asExpected === false
  if (options.corrupt !== undefined) {
    return refuse(isUnmet, (names) => `The service took what was corrupted: ${names}.`)
  }
  const isRefused = ({ answers }: Replay) => !answers.every(({ status }) => isTaken(status))
  refuse(isRefused, (names) => `The service refused ${names}.`)
  const isUndecided = ({ event, asExpected }: Replay) =>
    !asExpected && (event === null || event.state === 'pending')
  refuse(isUndecided, (names) => `Not decided so far: ${names}. See "affiliate webhooks events".`)
  refuse(isUnmet, (names) => `Not as expected: ${names}.`)
})

type EventsOptions = PageOptions &
  Partial<Pick<EventRow, 'state' | 'source'>> & { store?: string; since?: string; follow?: boolean }

export const events = reads(async (context, options: EventsOptions) => {
  const { platform, out, config } = context
  const { state, source, store = null, follow = false } = options
  const since = readMoment(options.since, config)
  const scopes = store === null ? undefined : await storesNamed(platform.database.reader, store)
  const page = await pageById(options, (request) =>
    listEvents(platform, { state, source, scopes, since, ...request }),
  )
  if (follow) {
    const isMeant = (row: EventRow) =>
      (!state || row.state === state) &&
      (!source || row.source === source) &&
      (!scopes || scopes.includes(row.scope))
    return followEvents(context, { isMeant, first: page.items.toReversed() })
  }
  const senders = await sendersOf(platform.database.reader, page.items)
  out.showPage(page, {
    columns: [
      { title: 'Id', cell: (row) => row.id },
      { title: 'State', cell: (row) => row.state },
      { title: 'Outcome', flexible: true, least: 40, cell: outcomeText },
      out.moment('Received', (row) => row.received_at),
      { title: 'From', flexible: true, cell: (row) => fromText(row, senders) },
      { title: 'Topic', cell: (row) => row.topic },
      { title: 'Attempts', right: true, cell: (row) => row.attempts },
    ],
    none: 'No events.',
    wire: (row) => wireEvent(row, senders),
  })
})

/** The ids of the stores of this id or host name. */
async function storesNamed(db: Queries, store: string): Promise<string[]> {
  const ids = await storeIdsOf(db, store)
  if (ids.length > 0) return ids
  throw new Failure(`There is no store ${store}.`, { code: 'not_found' })
}

type ReprocessOptions = { since?: string; store?: string }

/** Works from the database alone, and opens it for reading only. */
export const reprocess = readsDatabase(async ({ config, database, out }, options: ReprocessOptions) => {
  await assertMigrated(database)
  const { store = null } = options
  const since = readMoment(options.since, config)
  const storeIds = store === null ? null : await storesNamed(database.reader, store)
  const platform = { config, database, keys: readAppKeys(config, { create: false }) }
  await showReprocessing(out, platform, { since, store, storeIds })
})

export const show = reads(async (context, name: string, { body: withBody = false }: { body?: boolean }) => {
  const { platform, out } = context
  const { row, senders } = await eventNamed(context, name)
  const body = withBody ? await eventBody(platform, row.id) : null
  const text = body?.toString('utf8')
  const event = { ...wireEvent(row, senders), body_sha256: row.body_hash }
  out.show({ ...event, ...(withBody && { body: text ?? null }) }, () => eventPairs(out, row, senders))
  // Not wrapped: it may be copied.
  if (withBody && !out.json) {
    printLines(['', ...(text?.split('\n') ?? ['The body is past the retention time.'])])
  }
})

async function eventNamed({ platform, out }: AppContext, name: string) {
  const rows = await findEventsNamed(platform, name)
  const [row] = rows
  if (!row) {
    throw new Failure(`There is no event ${name}. See "affiliate webhooks events".`, { code: 'not_found' })
  }
  const senders = await sendersOf(platform.database.reader, rows)
  if (rows.length === 1) return { row, senders }
  throw new Failure(`${name} stands for ${rows.length} events. Give the id of one.`, {
    extra: { candidates: rows.map((one) => wireEvent(one, senders)) },
    lines: rows.map(
      (one) => `  ${one.id}  ${senders.domain(one) ?? one.scope}  ${one.state}  ${out.time(one.received_at)}`,
    ),
  })
}

type RetryOptions = ReasonOption & { type?: string }

export const retry = writes((context, name: string | undefined, { type, reason = null }: RetryOptions) =>
  type === undefined ? retryNamed(context, name ?? '', reason) : retryType(context, type, reason),
)

async function retryNamed(context: AppContext, name: string, reason: string | null): Promise<void> {
  const { platform, out } = context
  const { row, senders } = await eventNamed(context, name)
  // The others are refused below.
  if (row.state === 'pending' || row.state === 'set_aside') {
    await confirm(context, `Last time: ${outcomeText(row)}. Apply event ${row.id} again?`)
  }
  const due = await retryEvent(platform, row.id, reason)
  out.show(wireEvent(due, senders), () => [
    `The running service tries it again. Last time: ${outcomeText(row)}`,
    `See the result: affiliate webhooks show ${row.id}`,
  ])
}

async function retryType(context: AppContext, type: string, reason: string | null): Promise<void> {
  const { platform, out } = context
  await assertUnmapped(platform, type)
  await confirm(context, `Apply every event of type ${type} that no rule mapped?`)
  const retried = await retryUnmapped(platform, type, reason)
  out.show({ type, retried }, () => [
    `The running service tries ${counted(retried, 'event')} of type ${type} again.`,
    'It must have been restarted with the corrected PROCESSOR_EVENTS.',
  ])
}

const LOOK_EVERY_MS = 300

type ListenOptions = { source?: EventRow['source']; count?: number }

export const listen = reads((context, { source, count }: ListenOptions) =>
  followEvents(context, { isMeant: (row) => !source || row.source === source, count }),
)

interface Follow {
  isMeant: (row: EventRow) => boolean
  /** Shown at once, the oldest first. */
  first?: readonly EventRow[]
  /** Lines after which it ends. */
  count?: number | undefined
}

/** Prints events as they arrive and as they are settled. */
async function followEvents({ platform, out }: AppContext, options: Follow): Promise<void> {
  const watch = new EventWatch(platform)
  let left = options.count ?? Number.POSITIVE_INFINITY
  const show = async (rows: readonly EventRow[]) => {
    const senders = await sendersOf(platform.database.reader, rows)
    for (const row of rows.slice(0, left)) {
      const state = out.style(COLOUR[row.state], row.state.padEnd(9))
      const cells = [fromText(row, senders), row.topic ?? '–', outcomeText(row), row.id]
      if (out.json) printJson(wireEvent(row, senders))
      else printLines([out.shortIds([out.shortTime(row.received_at), state, ...cells].join('  '))])
    }
    left -= rows.length
    return left > 0
  }
  await show(options.first ?? [])
  await repeat(
    LOOK_EVERY_MS,
    async () => show((await watch.changes()).filter(options.isMeant)),
    () => {
      if (!out.json) printLines(['Listening; Ctrl-C ends it.'], process.stderr)
    },
  )
}

const COLOUR = { pending: 'yellow', done: 'green', ignored: 'dim', set_aside: 'red' } as const

type EventSenders = Awaited<ReturnType<typeof sendersOf>>

/** Where these events come from: the domain of their store, and who sent them. */
async function sendersOf(db: Queries, rows: readonly EventRow[]) {
  const stores = rows.filter((row) => row.source === 'store').map((row) => row.scope)
  const domains = await shopDomainsOf(db, [...new Set(stores)])
  const origins = await originsOf(db, rows)
  return {
    domain: (row: EventRow) => domains.get(row.scope) ?? null,
    origin: (row: EventRow) => origins.get(row.id) ?? row.source,
  }
}

function fromText(row: EventRow, { domain, origin }: EventSenders): string {
  const from = domain(row) ?? row.scope
  return origin(row) === 'operator' ? `${from}, sent by an operator` : from
}

function outcomeText(row: Pick<EventRow, 'reason' | 'result'>): string {
  return row.reason ?? (row.result === null ? '–' : fieldsText(JSON.parse(row.result)))
}

function wireEvent(row: EventRow, { domain, origin }: EventSenders) {
  return {
    id: row.id,
    source: row.source,
    origin: origin(row),
    store: row.source === 'store' ? { id: row.scope, shop_domain: domain(row) } : null,
    delivery_id: row.delivery_id,
    conflicting: row.conflict_hash !== '',
    topic: row.topic,
    state: row.state,
    attempts: row.attempts,
    reason: row.reason,
    result: row.result === null ? null : (JSON.parse(row.result) as unknown),
    received_at: wireTime(row.received_at),
    next_attempt_at: row.state === 'pending' ? wireTime(row.next_attempt_at) : null,
    finished_at: wireTime(row.finished_at),
  }
}

function eventPairs(out: Output, row: EventRow, { domain, origin }: EventSenders): string[] {
  const { conflict_hash, delivery_id, state, finished_at } = row
  return out.pairs([
    ['Event', row.id],
    ['From', row.source === 'store' ? `store ${domain(row) ?? row.scope}` : 'the processor'],
    ['Origin', origin(row) === 'operator' ? 'operator (webhooks replay)' : row.source],
    ['Delivery id', conflict_hash === '' ? delivery_id : `${delivery_id} (another body came first)`],
    ['Topic', row.topic ?? '–'],
    ['Received', out.time(row.received_at)],
    ['State', state],
    ['Attempts', String(row.attempts)],
    state === 'pending' && ['Next try', out.time(row.next_attempt_at)],
    finished_at !== null && ['Finished', out.time(finished_at)],
    ['Outcome', outcomeText(row)],
    ['Body hash', `sha256 ${row.body_hash}`],
  ])
}
