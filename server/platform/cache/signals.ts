import { randomUUID } from 'node:crypto'
import type { Client } from 'pg'
import { z } from 'zod'
import { jsonOrNull } from '../../../shared/json.ts'
import type { OpenDatabase } from '../database/open-database.ts'
import type { Platform } from '../platform.ts'
import { isShared } from '../topics.ts'

const CHANNEL = 'affiliate_signals'
/** Hints of the same topic within this time are one. */
const NEWS_DELAY_MS = 20
/** A message of PostgreSQL has fewer than 8000 bytes. */
const TOPICS_A_MESSAGE = 120
const RECONNECT_MS = 1000
/** Identifies this process, which ignores its own messages. */
const SELF = randomUUID()

/** The sender with its topics, or with the cache and key that `Caches.invalidate` takes. */
const MESSAGE = z.union([
  z.tuple([z.string(), z.array(z.string())]),
  z.tuple([z.string(), z.string().nullable(), z.string().nullable()]),
])

/**
 * PostgreSQL: sends each invalidation and each hint about a shared topic of this process to the other ones. Delivery is not guaranteed; the
 * lifetime of cached values covers lost messages. The returned function sends what waits and resolves when it is sent.
 */
export function publishSignals(
  { caches, topics }: Pick<Platform, 'caches' | 'topics'>,
  database: OpenDatabase,
): () => Promise<void> {
  if (database.dialect !== 'postgresql') return async () => {}
  const send = (...messages: z.infer<typeof MESSAGE>[]) => {
    const texts = messages.map((message) => JSON.stringify(message))
    return database.notify(CHANNEL, texts).catch(() => {})
  }
  caches.onInvalidation((name, key) => void send([SELF, name, key]))
  const waiting = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let sending: Promise<unknown> = Promise.resolve()
  const flush = async () => {
    clearTimeout(timer)
    timer = undefined
    const news = [...waiting]
    waiting.clear()
    const messages: [string, string[]][] = []
    while (news.length > 0) messages.push([SELF, news.splice(0, TOPICS_A_MESSAGE)])
    sending = Promise.all([sending, messages.length > 0 && send(...messages)])
    await sending
  }
  topics.onSend((topic) => {
    if (!isShared(topic)) return
    waiting.add(topic)
    timer ??= setTimeout(() => void flush(), NEWS_DELAY_MS).unref()
  })
  return flush
}

export type Subscription = ReturnType<typeof subscribeSignals>

/** PostgreSQL: applies other processes' invalidations and delivers their hints, received over a separate connection that reconnects when it breaks. */
export function subscribeSignals(
  { caches, topics, log }: Pick<Platform, 'caches' | 'topics' | 'log'>,
  database: OpenDatabase,
) {
  if (database.dialect !== 'postgresql') return { ready: Promise.resolve(), stop: async () => {} }
  let current: Client | null = null
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  const receive = (payload = '') => {
    const { data } = MESSAGE.safeParse(jsonOrNull(payload))
    if (!data || data[0] === SELF) return
    if (data.length === 3) return caches.invalidate(data[1], data[2])
    for (const topic of data[1]) topics.deliver(topic)
  }
  const connect = async () => {
    // Not loaded on SQLite.
    const { clientOf } = await import('../database/postgres-hosts.ts')
    const client = clientOf(database.directUrl, { connectionTimeoutMillis: 1500, keepAlive: true })
    if (stopped) return
    current = client
    client.on('error', () => reconnect(client))
    client.on('end', () => reconnect(client))
    client.on('notification', ({ payload }) => receive(payload))
    try {
      await client.connect()
      await client.query(`listen ${CHANNEL}`)
      // Messages may have been missed.
      caches.invalidate(null, null)
    } catch {
      reconnect(client)
    }
  }
  const reconnect = (client: Client) => {
    if (stopped || current !== client) return
    current = null
    client.end().catch(() => {})
    log.debug('reconnecting for cache invalidations')
    timer = setTimeout(() => void connect(), RECONNECT_MS).unref()
  }
  return {
    /** Resolves once messages of other processes are received. */
    ready: connect(),
    async stop() {
      stopped = true
      clearTimeout(timer)
      await current?.end().catch(() => {})
    },
  }
}
