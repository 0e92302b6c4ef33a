import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { withStatementTimeout } from '../platform/database/database.ts'
import { GroupCommit } from '../platform/database/group-commit.ts'
import { withDigest } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { INBOX_TOPIC } from '../platform/topics.ts'
import type { EventSource } from './event-states.ts'
import { addEvents, deliveryKey, firstBodyHashes, type NewEvent } from './intake.store.ts'

export interface ReceivedEvent {
  source: EventSource
  /** The store's id, or `processor`. */
  scope: string
  /** The sender's id of the delivery, the same on its retries. */
  deliveryId: string
  topic: string | null
  /** When it was triggered, by an unsigned header, epoch ms. */
  triggeredAt?: number | null
  rawBody: Buffer
}

/** `known`: a redelivery. `conflict`: this delivery id came before with another body; both are stored. */
export type Receipt = 'stored' | 'known' | 'conflict'

export type InboxRecorder = ReturnType<typeof createInboxRecorder>

/** PostgreSQL writes one batch while this process checks and sends the next. */
const CONCURRENCY = { sqlite: 1, postgresql: 2 } as const

/** Writes the events of concurrent requests to disk in one transaction. */
export function createInboxRecorder(platform: Platform) {
  const group = new GroupCommit<ReceivedEvent, Receipt>({
    write: (events) => writeEvents(platform, events),
    maxBatch: 128,
    concurrency: CONCURRENCY[platform.database.dialect],
    maxWaiting: 2048,
    bytesOf: ({ rawBody }) => rawBody.length,
    maxBatchBytes: 4 * 1024 * 1024,
    maxWaitingBytes: 64 * 1024 * 1024,
    timeoutMs: 1800,
  })
  return {
    /** Resolves once the event is on disk. Refuses with `unavailable` when that takes too long. */
    record: (event: ReceivedEvent) => group.add(event),
    /** Whether this delivery is already stored with this body. */
    isKnown: (event: ReceivedEvent) => withStatementTimeout(() => isKnown(platform, event)),
    /** How many events wait for the next write. */
    waiting: () => group.waiting,
    idle: () => group.idle(),
  }
}

async function isKnown({ database }: Platform, { scope, deliveryId, rawBody }: ReceivedEvent) {
  const first = await firstBodyHashes(database.reader, [{ scope, delivery_id: deliveryId }])
  return first.get(deliveryKey({ scope, delivery_id: deliveryId })) === hash('sha256', rawBody, 'hex')
}

async function writeEvents(platform: Platform, received: ReceivedEvent[]): Promise<Receipt[]> {
  const events = received.map((event) => newEvent(platform, event))
  const added = await addEvents(platform.database, events)
  const repeated = events.filter(({ id }) => !added.has(id))
  const conflicts = repeated.length > 0 ? await addConflicts(platform, repeated) : new Set<string>()
  platform.topics.send(INBOX_TOPIC)
  return events.map(({ id }): Receipt => {
    if (added.has(id)) return 'stored'
    return conflicts.has(id) ? 'conflict' : 'known'
  })
}

function newEvent(platform: Platform, event: ReceivedEvent): NewEvent {
  const { rawBody } = event
  // PostgreSQL's text type takes no NUL, and bytes that are not UTF-8 would change.
  const plain = isUtf8(rawBody) && !rawBody.includes(0)
  return withDigest(platform.keys, 'inbound_events', {
    id: platform.ids.next(),
    source: event.source,
    scope: event.scope,
    delivery_id: event.deliveryId,
    conflict_hash: '',
    body_hash: hash('sha256', rawBody, 'hex'),
    topic: event.topic,
    received_at: platform.clock.now(),
    triggered_at: event.triggeredAt ?? null,
    encoding: plain ? 'utf8' : 'base64',
    body: plain ? rawBody : Buffer.from(rawBody.toString('base64')),
  })
}

/**
 * Stores the repeated deliveries with another body than the first one; returns their ids. The first deliveries are on disk, so this needs
 * not be in the transaction that found them.
 */
async function addConflicts({ database, keys }: Platform, repeated: NewEvent[]): Promise<Set<string>> {
  const first = await firstBodyHashes(database.reader, repeated)
  const different = repeated.filter((event) => first.get(deliveryKey(event)) !== event.body_hash)
  if (different.length === 0) return new Set()
  return addEvents(
    database,
    different.map((event) =>
      withDigest(keys, 'inbound_events', { ...event, conflict_hash: event.body_hash }),
    ),
  )
}
