import type { EventRow } from '../server/inbox/inbox.service.ts'
import { type Output, wireTime } from './output.ts'
import { printable } from './table.ts'

const COLOUR = { pending: 'yellow', done: 'green', ignored: 'dim', set_aside: 'red' } as const

export function eventTable(
  out: Output,
  rows: readonly EventRow[],
  domain: (scope: string) => string | null,
): string[] {
  return out.table(
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
      domain(row.scope) ?? row.scope,
      row.topic ?? '–',
      row.state,
      String(row.attempts),
      outcomeText(row),
      row.id,
    ]),
  )
}

/** One event, as it is told while they come in. */
export function eventLine(out: Output, row: EventRow, domain: string | null): string {
  const state = out.style(COLOUR[row.state], row.state.padEnd(9))
  const from = domain ?? row.scope
  const cells = [from, row.topic ?? '–', outcomeText(row), row.id].map(printable)
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

export function wireEvent(row: EventRow, shopDomain: string | null) {
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
    result: row.result === null ? null : (JSON.parse(row.result) as unknown),
    received_at: wireTime(row.received_at),
    next_attempt_at: row.state === 'pending' ? wireTime(row.next_attempt_at) : null,
    finished_at: wireTime(row.finished_at),
  }
}

export function eventPairs(out: Output, row: EventRow, domain: string | null): [string, string][] {
  return [
    ['Event', row.id],
    ['From', row.source === 'store' ? `store ${domain ?? row.scope}` : 'the processor'],
    [
      'Delivery id',
      row.conflict_hash === '' ? row.delivery_id : `${row.delivery_id} (another body came first)`,
    ],
    ['Topic', row.topic ?? '–'],
    ['Received', out.time(row.received_at)],
    ['State', row.state],
    ['Tries', String(row.attempts)],
    ...(row.state === 'pending' ? [['Next try', out.time(row.next_attempt_at)] as [string, string]] : []),
    ...(row.finished_at === null ? [] : [['Finished', out.time(row.finished_at)] as [string, string]]),
    ['What became of it', outcomeText(row)],
    ['Body hash', `sha256 ${row.body_hash}`],
  ]
}
