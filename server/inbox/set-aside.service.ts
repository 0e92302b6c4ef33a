import { OPERATOR, recordAudit } from '../flags/audit.service.ts'
import { closeFlag, openFlagAbout, raiseFlag } from '../flags/flags.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { INBOX_TOPIC } from '../platform/topics.ts'
import {
  countSetAside,
  findSetAsideOrders,
  findUnreadable,
  hasUnmappedEvents,
  makeDue,
  type SetAsideClass,
  unmappedEventsAfter,
  unmappedReason,
  unmappedType,
} from './events.store.ts'
import type { EventRow } from './inbox.store.ts'

/** An event that was set aside, which an operator must see. */
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

/** The reason of an event whose body cannot be read starts with this. */
export const UNREADABLE = 'malformed: '

/** An operator handles all events of one class in the same way: ask the store, or find our fault. */
function classOf({ conflicting, reason }: Pick<Subject, 'conflicting' | 'reason'>): SetAsideClass {
  if (conflicting) return 'conflicting'
  return reason.startsWith(UNREADABLE) ? 'unreadable' : 'failed'
}

/** A store's events share one flag for each class. Each event of the processor, which is about money, has its own. */
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

interface GroupEvidence {
  events?: number
  reasons?: Record<string, number>
  latest_event_ids?: string[]
}

async function flagGroup(platform: Platform, tx: Tx, events: readonly FlaggedEvent[]): Promise<void> {
  const latest = events.at(-1) as FlaggedEvent
  const subject = flagSubject(latest)
  const open = await openFlagAbout(tx, subject)
  const former = JSON.parse(open?.evidence ?? '{}') as GroupEvidence
  const count = (former.events ?? 0) + events.length
  const ids = [...events.map(({ id }) => id).reverse(), ...(former.latest_event_ids ?? [])]
  await raiseFlag(platform, tx, {
    ...subject,
    summary: summaryOf(latest, count),
    evidence: {
      source: latest.source,
      scope: latest.scope,
      events: count,
      reasons: countReasons(former.reasons ?? {}, events),
      latest_event_ids: ids.slice(0, MOST_LISTED),
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

/** Indexes are removed from reasons, because they differ between orders. */
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

const RETRIED = 'The event was tried again.'

/** Resolves the flags of an event that is retried, unless another event that shares them is still set aside. */
export async function closeSetAsideFlag(platform: Platform, tx: Tx, row: EventRow): Promise<void> {
  const reason = row.reason ?? ''
  const event = { ...row, conflicting: row.conflict_hash !== '', reason }
  const others =
    row.source === 'store' ? await countSetAside(tx, [row.scope], { class: classOf(event) }) : null
  if (!others?.has(row.scope)) await closeFlag(platform, tx, flagSubject(event), RETRIED)
  const type = unmappedType(reason)
  if (type !== null && !(await hasUnmappedEvents(tx, type)))
    await closeFlag(platform, tx, unmappedSubject(type), RETRIED)
}

const SEVEN_DAYS_MS = 7 * 86_400_000

/** The number of signed orders of the last 7 days that could not be read, by store id. Omits stores without any. `now` in epoch ms. */
export function countUnreadableOrders(
  db: Queries,
  storeIds: readonly string[],
  now: number,
): Promise<Map<string, number>> {
  return countSetAside(db, storeIds, { class: 'unreadable', since: now - SEVEN_DAYS_MS })
}

/** The most unreadable orders that are shown for one order id or name. */
const MOST_FOUND = 20

export type UnreadableOrder = EventRow

/** Events set aside as unreadable whose order has this id or name, newest first. `storeIds`: `null` for all stores. */
export function unreadableOrders(
  db: Queries,
  order: { id: string } | { name: string },
  storeIds: readonly string[] | null,
): Promise<UnreadableOrder[]> {
  return findUnreadable(db, order, storeIds, MOST_FOUND)
}

/** Why events of these stores were set aside that hold these orders, by order id. */
export async function setAsideReasons(
  db: Queries,
  storeIds: readonly string[],
  orderIds: readonly string[],
): Promise<Map<string, string>> {
  const rows = await findSetAsideOrders(db, storeIds, orderIds)
  return new Map(rows.map((row) => [row.order_id ?? '', row.reason ?? '']))
}

function unmappedSubject(type: string) {
  return {
    kind: 'processor_event_unmapped',
    subjectType: 'processor_event_type',
    subjectId: type,
  } as const
}

/**
 * Flags a processor event that no rule maps. It is set aside, so that it can be applied once PROCESSOR_EVENTS is corrected. All events of a
 * type share one flag. Returns the event's outcome.
 */
export async function setAsideUnmapped(
  platform: Platform,
  tx: Tx,
  event: { id: string; deliveryId: string },
  type: string,
) {
  const subject = unmappedSubject(type)
  const open = await openFlagAbout(tx, subject)
  const { events = 0 } = JSON.parse(open?.evidence ?? '{}') as { events?: number }
  await raiseFlag(platform, tx, {
    ...subject,
    summary: `No rule in PROCESSOR_EVENTS maps the processor's event type ${type}. Add one, or map the type to ignore; then run "affiliate webhooks retry --type TYPE".`,
    evidence: {
      event_type: type,
      events: events + 1,
      latest_event_id: event.id,
      latest_delivery_id: event.deliveryId,
    },
  })
  return { kind: 'set_aside', reason: unmappedReason(type), flagged: true } as const
}

/** Events that become due in one transaction. */
const RETRY_PAGE = 200

/**
 * Makes all events due that were set aside because no rule maps their type, and resolves the flag. Skips events whose body is past its
 * retention time. Returns how many are due. Refuses with `not_found` when there are none.
 */
export async function retryUnmapped(
  platform: Platform,
  type: string,
  reason: string | null,
): Promise<number> {
  let retried = 0
  for (let after: string | undefined = NIL_ID; after !== undefined; ) {
    const from: string = after
    const ids = await platform.database.transaction((tx) => retryPage(platform, tx, type, from, reason))
    retried += ids.length
    after = ids.at(-1)
  }
  if (retried === 0) throw noneWaits(type)
  return retried
}

/** Refuses with `not_found` when no event of this type is set aside as unmapped. */
export async function assertUnmapped({ database }: Platform, type: string): Promise<void> {
  if (!(await hasUnmappedEvents(database.reader, type))) throw noneWaits(type)
}

function noneWaits(type: string): Refusal {
  return new Refusal('not_found', `No event of type ${type} waits for a rule.`)
}

/** Goes by id, because a running worker may set an event aside again meanwhile. */
async function retryPage(
  platform: Platform,
  tx: Tx,
  type: string,
  after: string,
  reason: string | null,
): Promise<string[]> {
  const ids = await unmappedEventsAfter(tx, type, after, RETRY_PAGE)
  if (ids.length === 0) return ids
  await makeDue(tx, ids, platform.clock.now())
  await closeFlag(platform, tx, unmappedSubject(type), 'The events were tried again.')
  await recordAudit(platform, tx, {
    actor: OPERATOR,
    action: 'event.retry',
    subjectType: 'processor_event_type',
    subjectId: type,
    reason,
    before: { state: 'set_aside', events: ids.length, first: ids[0], last: ids.at(-1) },
    after: { state: 'pending', attempts: 0 },
  })
  afterCommit(tx, () => platform.topics.send(INBOX_TOPIC))
  return ids
}
