import { closeFlag, openFlagAbout } from '../moderation/flag-queue.service.ts'
import { raiseFlag } from '../moderation/flags.service.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { EventRow } from './inbox.store.ts'
import { findUnreadable, type SetAsideClass, setAsideEventsOf } from './set-aside-events.store.ts'

/** A settled event that an operator must see. */
export interface FlaggedEvent {
  id: string
  source: EventRow['source']
  scope: string
  deliveryId: string
  topic: string | null
  conflicting: boolean
  attempts: number
  reason: string
}

type Subject = Pick<FlaggedEvent, 'id' | 'source' | 'scope' | 'conflicting' | 'reason'>

/** Distinct reasons and event ids that a flag lists. */
const MOST_LISTED = 10

/** The reason of an event whose body cannot be read begins like this. */
export const UNREADABLE = 'malformed: '

/** What an operator has to do is the same for all events of a class: ask the store, or look for a fault of ours. */
function classOf({ conflicting, reason }: Pick<Subject, 'conflicting' | 'reason'>): SetAsideClass {
  if (conflicting) return 'conflicting'
  return reason.startsWith(UNREADABLE) ? 'unreadable' : 'failed'
}

/** Events of a store share one flag per class; each event of the processor, which is about money, has its own. */
function flagSubject(event: Subject) {
  const kind = event.conflicting ? ('event_body_conflict' as const) : ('event_set_aside' as const)
  return event.source === 'store'
    ? ({ kind, subjectType: 'store_events', subjectId: `${event.scope}:${classOf(event)}` } as const)
    : ({ kind, subjectType: 'inbound_event', subjectId: event.id } as const)
}

/** Raises or refreshes the flags of events that were set aside in this transaction. */
export async function flagSetAside(
  platform: Platform,
  tx: Tx,
  events: readonly FlaggedEvent[],
): Promise<void> {
  const groups = Map.groupBy(events, (event) => flagSubject(event).subjectId)
  for (const group of groups.values()) await flagGroup(platform, tx, group)
}

interface FoldedEvidence {
  events?: number
  reasons?: Record<string, number>
  latest_event_ids?: string[]
}

async function flagGroup(platform: Platform, tx: Tx, events: readonly FlaggedEvent[]): Promise<void> {
  const latest = events.at(-1) as FlaggedEvent
  const subject = flagSubject(latest)
  const open = await openFlagAbout(tx, subject)
  const former = JSON.parse(open?.evidence ?? '{}') as FoldedEvidence
  const count = (former.events ?? 0) + events.length
  await raiseFlag(platform, tx, {
    ...subject,
    summary: summaryOf(latest, count),
    evidence: {
      source: latest.source,
      scope: latest.scope,
      events: count,
      reasons: countReasons(former.reasons ?? {}, events),
      latest_event_ids: [...events.map(({ id }) => id).reverse(), ...(former.latest_event_ids ?? [])].slice(
        0,
        MOST_LISTED,
      ),
      delivery_id: latest.deliveryId,
      topic: latest.topic,
      reason: latest.reason,
      attempts: latest.attempts,
    },
  })
}

function summaryOf({ source, conflicting, reason }: FlaggedEvent, events: number): string {
  const what = events === 1 ? `A ${source} event` : `${events} ${source} events`
  return conflicting
    ? `${what} came again under a known delivery id with another body.`
    : `${what} could not be applied. Latest reason: ${reason}`
}

/** Line numbers differ from order to order and would make each reason look new. */
function countReasons(former: Record<string, number>, events: readonly FlaggedEvent[]) {
  const counts = new Map(Object.entries(former))
  for (const { reason } of events) {
    const key = reason
      .replace(/\[\d+\]/g, '[n]')
      .slice(0, 200)
      .toWellFormed()
    const listed = counts.has(key) || counts.size < MOST_LISTED ? key : 'other reasons'
    counts.set(listed, (counts.get(listed) ?? 0) + 1)
  }
  return Object.fromEntries(counts)
}

/** Resolves the flag of an event that is tried again, when no other event that shares it is set aside. */
export async function closeSetAsideFlag(platform: Platform, tx: Tx, event: Subject): Promise<void> {
  const note = 'The event was tried again.'
  // Flags of the version before are about the event itself.
  await closeFlag(
    platform,
    tx,
    { kind: 'event_set_aside', subjectType: 'inbound_event', subjectId: event.id },
    note,
  )
  if (event.source !== 'store') return
  const others = await setAsideEventsOf(tx, [event.scope], { class: classOf(event) })
  if (!others.has(event.scope)) await closeFlag(platform, tx, flagSubject(event), note)
}

const SEVEN_DAYS_MS = 7 * 86_400_000

/**
 * Signed orders of the last 7 days that could not be read, by store id; stores without any are missing. `now` in epoch ms.
 */
export function unreadableOrdersOf(
  db: Queries,
  storeIds: readonly string[],
  now: number,
): Promise<Map<string, number>> {
  return setAsideEventsOf(db, storeIds, { class: 'unreadable', since: now - SEVEN_DAYS_MS })
}

/** Orders that one order id or name can mean; more are not shown. */
const MOST_FOUND = 20

/** Events set aside as unreadable whose order has this id or name, newest first. `storeIds`: `null` for every store. */
export function unreadableOrders(
  db: Queries,
  order: { id: string } | { name: string },
  storeIds: readonly string[] | null,
): Promise<EventRow[]> {
  return findUnreadable(db, order, storeIds, MOST_FOUND)
}
