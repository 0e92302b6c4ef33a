import type { EventName } from '../../shared/events.ts'
import { flagForgedRows } from '../flags/forged-rows.service.ts'
import {
  advisoryLock,
  afterCommit,
  type Queries,
  type Tx,
  WriteConflict,
} from '../platform/database/database.ts'
import { splitRows, withDigest } from '../platform/database/protected-rows.ts'
import { firstIdAt } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import {
  deleteEventsBelow,
  eventsById,
  insertEvents,
  markDistributed,
  type OutboxEventRow,
  pendingEvents,
} from './outbox.store.ts'

export { countPending as outboxBacklog, type OutboxEventRow } from './outbox.store.ts'

/** Besides the events of the wire contract: for the owner of an endpoint that the service disabled. */
type EventType = EventName | 'webhook.test' | 'webhook_endpoint.disabled'

export interface NewEvent {
  type: EventType
  /** The account that is notified. */
  accountId: string
  /** The row that the event is about. An account's events about one subject are delivered in order. */
  subjectId: string
  /** The subject as the account's own API shows it. No buyer data. */
  data: object
}

/** A way to notify accounts, such as webhooks. */
export interface Channel {
  /**
   * Queues what the channel will send for these events, in the transaction that marks them as distributed, so each event comes once. Must
   * not send anything itself.
   */
  enqueue(platform: Platform, tx: Tx, events: readonly OutboxEventRow[]): Promise<void>
}

/** The signal for new events. */
export const OUTBOX_SIGNAL = 'outbox'

/** How long distributed events are kept, ms. */
export const EVENT_RETENTION_MS = 30 * 86_400_000

const BATCH = 500

/**
 * Writes events in the caller's transaction, which causes them; the worker gives them to every channel. The caller must have locked
 * or changed the subjects, so that their events are in the order of their changes. Returns the ids, in the given order.
 */
export async function publishEvents(
  platform: Platform,
  tx: Tx,
  events: readonly NewEvent[],
  /** For an event that its caller gives to a channel itself. */
  { distributed = false }: { distributed?: boolean } = {},
): Promise<string[]> {
  if (events.length === 0) return []
  const now = platform.clock.now()
  const rows = events.map(({ type, accountId, subjectId, data }) =>
    withDigest(platform.keys, 'outbox_events', {
      id: platform.ids.next(),
      type,
      account_id: accountId,
      subject_id: subjectId,
      data: JSON.stringify(data),
      created_at: now,
    }),
  )
  try {
    await insertEvents(tx, rows, distributed ? now : null)
  } catch (error) {
    if (platform.database.faultOf(error)?.kind !== 'unique') throw error
    throw new WriteConflict('an event about one of the subjects')
  }
  if (!distributed) afterCommit(tx, () => platform.topics.send(OUTBOX_SIGNAL))
  return rows.map(({ id }) => id)
}

/** Gives a batch of pending events to every channel, except those that the service did not write. Returns how many there were. */
export async function distributeEvents(platform: Platform, channels: readonly Channel[]): Promise<number> {
  const { database } = platform
  if ((await pendingEvents(database.reader, 1)).length === 0) return 0
  return database.transaction(async (tx) => {
    await advisoryLock(tx, 'outbox')
    const events = await pendingEvents(tx, BATCH)
    if (events.length === 0) return 0
    const { authentic, forged } = splitRows(platform.keys, 'outbox_events', events)
    await flagForgedRows(platform, tx, 'outbox_events', forged)
    for (const channel of channels) await channel.enqueue(platform, tx, authentic)
    const ids = events.map(({ id }) => id)
    await markDistributed(tx, ids, platform.clock.now())
    return events.length
  })
}

export async function eventsOf(db: Queries, ids: readonly string[]) {
  return new Map((await eventsById(db, [...new Set(ids)])).map((event) => [event.id, event]))
}

/** Events with smaller ids are past their retention. Channels must drop what refers to them before `removeOldEvents` runs. */
export function oldestKeptEvent({ clock }: Platform): string {
  return firstIdAt(clock.now() - EVENT_RETENTION_MS)
}

/** Removes distributed events that are past their retention, in small transactions. */
export async function removeOldEvents(platform: Platform): Promise<void> {
  const below = oldestKeptEvent(platform)
  const removeBatch = () => platform.database.transaction((tx) => deleteEventsBelow(tx, below, BATCH))
  while ((await removeBatch()) === BATCH);
}
