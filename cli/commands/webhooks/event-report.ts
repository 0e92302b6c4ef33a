import type { EventRow } from '../../../server/inbox/events.service.ts'
import type { EventOrigin } from '../../../server/inbox/operator-deliveries.service.ts'
import type { Queries } from '../../../server/platform/database/database.ts'
import { type Output, wireTime } from '../../terminal/output.ts'

const COLOUR = { pending: 'yellow', done: 'green', ignored: 'dim', set_aside: 'red' } as const

/** Where events come from: the domain of their store, and who sent them, by event id. */
export interface EventSenders {
  domain(row: EventRow): string | null
  origin(row: EventRow): EventOrigin
}

/** Reads the senders of these events. */
export async function sendersOf(db: Queries, rows: readonly EventRow[]): Promise<EventSenders> {
  const { shopDomainsOf } = await import('../../../server/stores/stores.service.ts')
  const { originsOf } = await import('../../../server/inbox/operator-deliveries.service.ts')
  const stores = rows.filter((row) => row.source === 'store').map((row) => row.scope)
  const domains = await shopDomainsOf(db, [...new Set(stores)])
  const origins = await originsOf(db, rows)
  return {
    domain: (row) => domains.get(row.scope) ?? null,
    origin: (row) => origins.get(row.id) ?? row.source,
  }
}

function fromText(row: EventRow, { domain, origin }: EventSenders): string {
  const from = domain(row) ?? row.scope
  return origin(row) === 'operator' ? `${from}, sent by an operator` : from
}

export function eventTable(out: Output, rows: readonly EventRow[], senders: EventSenders): string[] {
  return out.table(
    [
      { title: 'Received' },
      { title: 'From', flexible: true },
      { title: 'Topic' },
      { title: 'State' },
      { title: 'Attempts', right: true },
      { title: 'Outcome', flexible: true },
      { title: 'Id' },
    ],
    rows.map((row) => [
      out.shortTime(row.received_at),
      fromText(row, senders),
      row.topic ?? '–',
      row.state,
      String(row.attempts),
      outcomeText(row),
      row.id,
    ]),
  )
}

/** One line for an event that came in. */
export function eventLine(out: Output, row: EventRow, senders: EventSenders): string {
  const state = out.style(COLOUR[row.state], row.state.padEnd(9))
  const cells = [fromText(row, senders), row.topic ?? '–', outcomeText(row), row.id]
  return [out.time(row.received_at), state, ...cells].join('  ')
}

export function outcomeText(row: Pick<EventRow, 'reason' | 'result'>): string {
  return row.reason ?? resultText(row.result)
}

function resultText(result: string | null): string {
  if (result === null) return '–'
  return Object.entries(JSON.parse(result) as Record<string, unknown>)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}

export function wireEvent(row: EventRow, { domain, origin }: EventSenders) {
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

export function eventPairs(out: Output, row: EventRow, { domain, origin }: EventSenders): [string, string][] {
  return [
    ['Event', row.id],
    ['From', row.source === 'store' ? `store ${domain(row) ?? row.scope}` : 'the processor'],
    ['Origin', origin(row) === 'operator' ? 'operator (webhooks replay)' : row.source],
    [
      'Delivery id',
      row.conflict_hash === '' ? row.delivery_id : `${row.delivery_id} (another body came first)`,
    ],
    ['Topic', row.topic ?? '–'],
    ['Received', out.time(row.received_at)],
    ['State', row.state],
    ['Attempts', String(row.attempts)],
    ...(row.state === 'pending' ? [['Next try', out.time(row.next_attempt_at)] as [string, string]] : []),
    ...(row.finished_at === null ? [] : [['Finished', out.time(row.finished_at)] as [string, string]]),
    ['Outcome', outcomeText(row)],
    ['Body hash', `sha256 ${row.body_hash}`],
  ]
}
