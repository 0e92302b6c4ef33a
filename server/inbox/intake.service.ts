import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { GroupCommit } from '../platform/database/group-commit.ts'
import type { Platform } from '../platform/platform.ts'
import type { EventSource } from './event-words.ts'
import { addEvents, deliveryKey, firstBodyHashes, type NewEvent } from './intake.store.ts'

export interface ReceivedEvent {
  source: EventSource
  /** The store's id, or `processor`. */
  scope: string
  /** The sender's id of the delivery, the same on its retries. */
  deliveryId: string
  topic: string | null
  /** When the sender says that it was triggered, epoch ms; unsigned. */
  triggeredAt?: number | null
  rawBody: Buffer
}

/** `known`: it was here already. `conflict`: this delivery id came before with another body; both are kept. */
export type Receipt = 'stored' | 'known' | 'conflict'

export interface InboxRecorder {
  /** Resolves once the event is on disk. Refuses with `unavailable` when that cannot be done in time. */
  record(event: ReceivedEvent): Promise<Receipt>
  /** Whether this delivery is stored already with this body, so that recording it would change nothing. */
  isKnown(event: ReceivedEvent): Promise<boolean>
  /** How many events wait for the next write. */
  waiting(): number
  idle(): Promise<void>
}

/** PostgreSQL writes one batch while this process checks and sends the next. */
const CONCURRENCY = { sqlite: 1, postgresql: 2 } as const

/** The way into the inbox: what requests that run at once bring in goes to disk in one transaction. */
export function createInboxRecorder(platform: Platform): InboxRecorder {
  const group = new GroupCommit<ReceivedEvent, Receipt>({
    write: (events) => writeEvents(platform, events),
    maxBatch: 128,
    concurrency: CONCURRENCY[platform.database.dialect],
    maxWaiting: 2048,
    bytesOf: ({ rawBody }) => rawBody.length,
    maxBatchBytes: 4 * 1024 * 1024,
    maxWaitingBytes: 64 * 1024 * 1024,
    timeoutMs: 2000,
  })
  return {
    record: (event) => group.add(event),
    isKnown: (event) => isKnown(platform, event),
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
  platform.signals.send('inbox')
  return events.map(({ id }): Receipt => {
    if (added.has(id)) return 'stored'
    return conflicts.has(id) ? 'conflict' : 'known'
  })
}

function newEvent(platform: Platform, event: ReceivedEvent): NewEvent {
  const { rawBody } = event
  // PostgreSQL's text takes no NUL, and bytes that are no UTF-8 would not come back as they were.
  const plain = isUtf8(rawBody) && !rawBody.includes(0)
  return {
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
  }
}

/**
 * Keeps those of the repeated deliveries whose body is another than at first; answers their ids. The first ones are on disk by now,
 * so this need not be part of the transaction that found them.
 */
async function addConflicts({ database }: Platform, repeated: NewEvent[]): Promise<Set<string>> {
  const first = await firstBodyHashes(database.reader, repeated)
  const different = repeated.filter((event) => first.get(deliveryKey(event)) !== event.body_hash)
  if (different.length === 0) return new Set()
  return addEvents(
    database,
    different.map((event) => ({ ...event, conflict_hash: event.body_hash })),
  )
}
