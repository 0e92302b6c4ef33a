import { OPERATOR, recordAudit } from '../moderation/audit.service.ts'
import { closeFlag, openFlagAbout } from '../moderation/flag-queue.service.ts'
import { raiseFlag } from '../moderation/flags.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { afterCommit, type Tx } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import type { ClaimedEvent, EventOutcome } from './inbox.service.ts'
import {
  findUnmappedEvents,
  hasUnmappedEvents,
  makeEventsDue,
  typeOfReason,
  unmappedReason,
} from './unmapped-events.store.ts'

function flagSubject(type: string) {
  return {
    kind: 'processor_event_unmapped',
    subjectType: 'processor_event_type',
    subjectId: type,
  } as const
}

/**
 * Sets a processor event aside that no rule maps, so that it can be applied once PROCESSOR_EVENTS is corrected. All events of a
 * type share one flag.
 */
export async function setAsideUnmapped(
  platform: Platform,
  tx: Tx,
  event: ClaimedEvent,
  type: string,
): Promise<EventOutcome> {
  const subject = flagSubject(type)
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
  return { kind: 'set_aside', reason: unmappedReason(type), flagged: true }
}

/** Events that become due in one transaction. */
const AT_ONCE = 200

/**
 * Makes all events of a type that were set aside as unmapped due again, and resolves their flag. Events whose body is past the
 * retention time stay. Answers how many are due. Refuses with `not_found` when there are none.
 */
export async function retryUnmapped(
  platform: Platform,
  type: string,
  reason: string | null,
): Promise<number> {
  let retried = 0
  for (let after = NIL_ID; ; ) {
    const ids = await platform.database.transaction((tx) => retrySome(platform, tx, type, after, reason))
    retried += ids.length
    const last = ids.at(-1)
    if (last === undefined) break
    after = last
  }
  if (retried === 0) throw nothingWaits(type)
  return retried
}

/** Refuses with `not_found` when no event of this type is set aside as unmapped. */
export async function assertUnmapped({ database }: Platform, type: string): Promise<void> {
  if (!(await hasUnmappedEvents(database.reader, type))) throw nothingWaits(type)
}

function nothingWaits(type: string): Refusal {
  return new Refusal('not_found', `No event of type ${type} waits for a rule.`)
}

/** Those after the id `after`: a running worker may set an event aside again meanwhile. */
async function retrySome(
  platform: Platform,
  tx: Tx,
  type: string,
  after: string,
  reason: string | null,
): Promise<string[]> {
  const ids = await findUnmappedEvents(tx, type, after, AT_ONCE)
  if (ids.length === 0) return ids
  await makeEventsDue(tx, ids, platform.clock.now())
  await closeFlag(platform, tx, flagSubject(type), 'The events were tried again.')
  await recordAudit(platform, tx, {
    actor: OPERATOR,
    action: 'event.retry',
    subjectType: 'processor_event_type',
    subjectId: type,
    reason,
    before: { state: 'set_aside', events: ids.length, first: ids[0], last: ids.at(-1) },
    after: { state: 'pending', attempts: 0 },
  })
  afterCommit(tx, () => platform.signals.send('inbox'))
  return ids
}

/** Resolves the flag of an event's type when no other event of the type is set aside. `reason` is the event's. */
export async function closeFlagOfLast(platform: Platform, tx: Tx, reason: string | null): Promise<void> {
  const type = typeOfReason(reason)
  if (type === null || (await hasUnmappedEvents(tx, type))) return
  await closeFlag(platform, tx, flagSubject(type), 'The event was tried again.')
}
