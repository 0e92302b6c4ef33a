import { DAY_MS } from '../../shared/durations.ts'
import { OPERATOR, recordAudit } from '../flags/audit.service.ts'
import { closeFlag, openFlagAbout, openFlags, raiseFlag } from '../flags/flags.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { INBOX_TOPIC } from '../platform/topics.ts'
import {
  countSetAside,
  type EventRow,
  hasUnmappedEvents,
  lastUnreadableOf,
  makeDue,
  type SetAsideClass,
  unmappedEventsAfter,
} from './inbox.store.ts'

export { setAsideReasons, unreadableOrders } from './inbox.store.ts'

/** An event that was set aside, which an operator must see. */
export type SetAsideEvent = EventRow & { type?: string | undefined }

/** Distinct reasons and event ids that a flag lists. */
const MOST_LISTED = 10

/** The outcome of an event whose body cannot be read. `names`: what could be read of its order. */
export function unreadable(why: string, names?: Pick<EventRow, 'order_id' | 'order_name'>) {
  const outcome = { kind: 'set_aside', reason: `malformed: ${why}`, code: 'unreadable' } as const
  return names ? { ...outcome, names } : outcome
}

/** Outcomes of events whose body is not read. */
export const CONFLICTING = {
  kind: 'set_aside',
  reason: 'this delivery id came before with another body',
} as const
export const BODY_GONE = { kind: 'set_aside', reason: 'its body is past the retention time' } as const

/** An operator handles all events of one class in the same way: ask the store, or find our fault. */
function classOf({ conflict_hash, reason_code }: SetAsideEvent): SetAsideClass {
  if (conflict_hash !== '') return 'conflicting'
  return reason_code === 'unreadable' ? 'unreadable' : 'failed'
}

/** A processor event that no rule maps is set aside, so that it can be applied once PROCESSOR_EVENTS is corrected. */
export function unmapped(type: string) {
  return { kind: 'set_aside', reason: `no rule maps event type ${type}`, code: 'unmapped', type } as const
}

function unmappedSubject(type: string) {
  return {
    kind: 'processor_event_unmapped',
    subjectType: 'processor_event_type',
    subjectId: type,
  } as const
}

/**
 * A store's events share one flag for each class, and the processor's that no rule maps one for each type. Each other event of the
 * processor, which is about money, has its own.
 */
function flagSubject(event: SetAsideEvent) {
  if (event.type !== undefined) return unmappedSubject(event.type)
  const kind = event.conflict_hash === '' ? ('event_set_aside' as const) : ('event_body_conflict' as const)
  return event.source === 'store'
    ? ({ kind, subjectType: 'store_events', subjectId: `${event.scope}:${classOf(event)}` } as const)
    : ({ kind, subjectType: 'inbound_event', subjectId: event.id } as const)
}

/** Raises or refreshes the flags of events that were set aside in this transaction. */
export async function flagSetAside(
  platform: Platform,
  tx: Tx,
  events: readonly SetAsideEvent[],
): Promise<void> {
  const groups = Map.groupBy(events, (event) => flagSubject(event).subjectId)
  for (const group of groups.values()) await flagGroup(platform, tx, group)
}

interface GroupEvidence {
  events?: number
  reasons?: Record<string, number>
  latest_event_ids?: string[]
}

async function flagGroup(platform: Platform, tx: Tx, events: readonly SetAsideEvent[]): Promise<void> {
  const latest = events.at(-1) as SetAsideEvent
  const subject = flagSubject(latest)
  const open = await openFlagAbout(tx, subject)
  const former = JSON.parse(open?.evidence ?? '{}') as GroupEvidence
  const count = (former.events ?? 0) + events.length
  const ids = [...events.map(({ id }) => id).reverse(), ...(former.latest_event_ids ?? [])]
  if (subject.kind === 'processor_event_unmapped') {
    const type = subject.subjectId
    const latestIds = { latest_event_id: latest.id, latest_delivery_id: latest.delivery_id }
    return raiseFlag(platform, tx, {
      ...subject,
      summary: `No rule in PROCESSOR_EVENTS maps the processor's event type ${type}. Add one, or map the type to ignore; then run "affiliate webhooks retry --type TYPE".`,
      evidence: { event_type: type, events: count, ...latestIds },
    })
  }
  await raiseFlag(platform, tx, {
    ...subject,
    summary: summaryOf(latest, count),
    evidence: {
      source: latest.source,
      scope: latest.scope,
      events: count,
      reasons: countReasons(former.reasons ?? {}, events),
      latest_event_ids: ids.slice(0, MOST_LISTED),
      delivery_id: latest.delivery_id,
      topic: latest.topic,
      reason: latest.reason,
      attempts: latest.attempts,
    },
  })
}

function summaryOf({ source, conflict_hash, reason }: SetAsideEvent, events: number): string {
  const what = events === 1 ? `A ${source} event` : `${events} ${source} events`
  return conflict_hash !== ''
    ? `${what} came again under a known delivery id with another body.`
    : `${what} could not be applied. Latest reason: ${reason}`
}

/** Indexes are removed from reasons, because they differ between orders. */
function countReasons(former: Record<string, number>, events: readonly SetAsideEvent[]) {
  const counts = new Map(Object.entries(former))
  for (const { reason } of events) {
    const key = (reason ?? '')
      .replace(/\[\d+\]/g, '[n]')
      .slice(0, 200)
      .toWellFormed()
    const listed = counts.has(key) || counts.size < MOST_LISTED ? key : 'other reasons'
    counts.set(listed, (counts.get(listed) ?? 0) + 1)
  }
  return Object.fromEntries(counts)
}

const RETRIED = 'The event was tried again.'

/** Resolves the flag of an event that is retried, unless another event that shares it is still set aside. */
export async function closeSetAsideFlag(platform: Platform, tx: Tx, event: EventRow): Promise<void> {
  const open = event.reason_code === 'unmapped' ? await openFlags(tx, 'processor_event_unmapped') : []
  const type = open.find(({ subject_id }) => unmapped(subject_id).reason === event.reason)?.subject_id
  const hasOthers =
    type !== undefined
      ? await hasUnmappedEvents(tx, unmapped(type).reason)
      : event.source === 'store' && (await countSetAside(tx, [event.scope], classOf(event))).size > 0
  if (!hasOthers) await closeFlag(platform, tx, flagSubject({ ...event, type }), RETRIED)
}

/** The number of signed orders of the last 7 days that could not be read, by store id. Omits stores without any. `now` in epoch ms. */
export function countUnreadableOrders(
  db: Queries,
  storeIds: readonly string[],
  now: number,
): Promise<Map<string, number>> {
  return countSetAside(db, storeIds, 'unreadable', now - 7 * DAY_MS)
}

/** When an order that cannot be read for this reason came last, epoch ms, by store id. */
export function lastUnreadable(db: Queries, storeIds: readonly string[], why: string) {
  return lastUnreadableOf(db, storeIds, unreadable(why).reason)
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
  if (!(await hasUnmappedEvents(database.reader, unmapped(type).reason))) throw noneWaits(type)
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
  const ids = await unmappedEventsAfter(tx, unmapped(type).reason, after, RETRY_PAGE)
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
