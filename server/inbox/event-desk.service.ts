import { OPERATOR, recordAudit } from '../moderation/audit.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { afterCommit } from '../platform/database/database.ts'
import { firstIdAt, isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import {
  eventsAfter,
  eventsByIds,
  findBody,
  findEventById,
  findEventsByDelivery,
  hasBody,
  makeDue,
} from './event-desk.store.ts'
import type { EventRow } from './inbox.store.ts'
import { closeSetAsideFlag } from './set-aside-flags.service.ts'
import { closeFlagOfLast } from './unmapped-events.service.ts'

const MOST_CANDIDATES = 20

/** The events that an operator's name for one stands for: its id, or its sender's delivery id. */
export async function findEventsNamed(platform: Platform, name: string): Promise<EventRow[]> {
  const { reader } = platform.database
  const text = name.trim()
  const row = isId(text.toLowerCase()) ? await findEventById(reader, text.toLowerCase()) : undefined
  if (row) return [row]
  return text === '' || text.includes('\0') ? [] : findEventsByDelivery(reader, text, MOST_CANDIDATES)
}

/** The bytes as they came; `null` once the retention time has taken them. */
export function eventBody(platform: Platform, eventId: string): Promise<Buffer | null> {
  return findBody(platform.database.reader, eventId)
}

/**
 * Has an event that was set aside, or that waits for its next try, tried at once. Refuses with `not_found`, and with
 * `conflict` one that is settled, being worked on, without its body, or another body under a known delivery id.
 */
export function retryEvent(platform: Platform, eventId: string, reason: string | null): Promise<EventRow> {
  return platform.database.transaction(async (tx) => {
    const event = await findEventById(tx, eventId)
    if (!event) throw new Refusal('not_found', `There is no event ${eventId}.`)
    if (event.state === 'done' || event.state === 'ignored') {
      throw new Refusal('conflict', `This event is ${event.state}: it is never applied twice.`)
    }
    if (event.conflict_hash !== '') {
      throw new Refusal(
        'conflict',
        'Its delivery id came before with another body: only the first one counts.',
      )
    }
    if (!(await hasBody(tx, eventId))) {
      throw new Refusal('conflict', 'Its body is past the retention time: ask its sender to send it again.')
    }
    const now = platform.clock.now()
    if (!(await makeDue(tx, eventId, now)))
      throw new Refusal('conflict', 'A worker has this event right now.')
    await closeSetAsideFlag(platform, tx, { ...event, conflicting: false, reason: event.reason ?? '' })
    await closeFlagOfLast(platform, tx, event.reason)
    await recordAudit(platform, tx, {
      actor: OPERATOR,
      action: 'event.retry',
      subjectType: 'inbound_event',
      subjectId: eventId,
      reason,
      before: { state: event.state, attempts: event.attempts, why: event.reason },
      after: { state: 'pending', attempts: 0 },
    })
    afterCommit(tx, () => platform.signals.send('inbox'))
    return { ...event, state: 'pending', attempts: 0, next_attempt_at: now, finished_at: null }
  })
}

/** How far back one look goes: an id is made before its row is on disk, by this or another process. */
const OVERLAP_MS = 30_000
const AT_ONCE = 1000

/** Answers, each time it is asked, the events that are new or in another state than when it was last asked. */
export class EventWatch {
  readonly #platform: Platform
  readonly #startedAt: number
  readonly #known = new Map<string, string>()

  constructor(platform: Platform) {
    this.#platform = platform
    this.#startedAt = platform.clock.now()
  }

  async news(): Promise<EventRow[]> {
    const recent = await this.#recent()
    const recentIds = new Set(recent.map((row) => row.id))
    const older = await this.#stillWaiting(recentIds)
    const changed = [...older, ...recent].filter((row) => this.#known.get(row.id) !== markOf(row))
    for (const row of changed) this.#known.set(row.id, markOf(row))
    for (const [id, mark] of this.#known) {
      if (!waits(mark) && !recentIds.has(id)) this.#known.delete(id)
    }
    return changed
  }

  async #recent(): Promise<EventRow[]> {
    const horizon = this.#platform.clock.now() - OVERLAP_MS
    const rows: EventRow[] = []
    for (let after = firstIdAt(Math.max(this.#startedAt, horizon)); ; ) {
      const page = await eventsAfter(this.#platform.database.reader, after, AT_ONCE)
      rows.push(...page)
      if (page.length < AT_ONCE) return rows
      after = page.at(-1)?.id ?? after
    }
  }

  /** Those seen before that were not settled then and are too old for another look at everything recent. */
  #stillWaiting(recentIds: ReadonlySet<string>): Promise<EventRow[]> {
    const ids = [...this.#known].flatMap(([id, mark]) => (waits(mark) && !recentIds.has(id) ? [id] : []))
    return eventsByIds(this.#platform.database.reader, ids.slice(0, AT_ONCE))
  }
}

function markOf(row: EventRow): string {
  return `${row.state} ${row.attempts}`
}

function waits(mark: string): boolean {
  return mark.startsWith('pending')
}
