import { randomUUID } from 'node:crypto'
import type { Client } from 'pg'
import { z } from 'zod'
import { jsonOrNull } from '../../../shared/json.ts'
import type { OpenDatabase } from '../database/open-database.ts'
import type { Platform } from '../platform.ts'
import { isShared, type Topics } from '../topics.ts'
import type { Caches } from './caches.ts'

const CHANNEL = 'affiliate_caches'
const NEWS_CHANNEL = 'affiliate_news'
/** Hints of the same topic within this time are one. */
const NEWS_DELAY_MS = 20
/** A message of PostgreSQL has fewer than 8000 bytes. */
const TOPICS_A_MESSAGE = 120
const RECONNECT_MS = 1000
/** Identifies this process, which ignores its own messages. */
const SELF = randomUUID()

type Receiver = Pick<Platform, 'caches' | 'log' | 'topics'>

/** What is done with a message of another process, by its channel. Each begins with its sender. */
const RECEIVERS = {
  /** Sender, cache and key, as `Caches.invalidate` takes them. */
  [CHANNEL]: receiver(
    z.tuple([z.string(), z.string().nullable(), z.string().nullable()]),
    ({ caches }, [, name, key]) => caches.invalidate(name, key),
  ),
  /** Sender and topics. */
  [NEWS_CHANNEL]: receiver(z.tuple([z.string(), z.array(z.string())]), ({ topics }, [, news]) => {
    for (const topic of news) topics.deliver(topic)
  }),
}

function receiver<Message extends readonly [string, ...unknown[]]>(
  schema: z.ZodType<Message>,
  receive: (platform: Receiver, message: Message) => void,
) {
  return (platform: Receiver, payload: string) => {
    const { data } = schema.safeParse(jsonOrNull(payload))
    if (data && data[0] !== SELF) receive(platform, data)
  }
}

/**
 * PostgreSQL: sends the signals that processes share to the other ones, as `publishInvalidations` does. The returned function sends what waits
 * and resolves when it is sent.
 */
export function publishNews(topics: Topics, database: OpenDatabase): () => Promise<void> {
  if (database.dialect !== 'postgresql') return async () => {}
  const waiting = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let sending: Promise<unknown> = Promise.resolve()
  const flush = async () => {
    clearTimeout(timer)
    timer = undefined
    const topics = [...waiting]
    waiting.clear()
    const messages: string[] = []
    for (let from = 0; from < topics.length; from += TOPICS_A_MESSAGE) {
      messages.push(JSON.stringify([SELF, topics.slice(from, from + TOPICS_A_MESSAGE)]))
    }
    const sent = messages.length > 0 && database.notify(NEWS_CHANNEL, messages).catch(() => {})
    sending = Promise.all([sending, sent])
    await sending
  }
  topics.onSend((topic) => {
    if (!isShared(topic)) return
    waiting.add(topic)
    timer ??= setTimeout(() => void flush(), NEWS_DELAY_MS).unref()
  })
  return flush
}

/**
 * PostgreSQL: sends each invalidation of this process to the other processes. Delivery is not guaranteed; the lifetime of cached values
 * covers lost messages.
 */
export function publishInvalidations(caches: Caches, database: OpenDatabase): void {
  if (database.dialect !== 'postgresql') return
  caches.onInvalidation((name, key) => {
    const text = JSON.stringify([SELF, name, key])
    database.notify(CHANNEL, [text]).catch(() => {})
  })
}

export interface InvalidationSubscription {
  /** Resolves once invalidations of other processes are received. */
  readonly ready: Promise<void>
  stop(): Promise<void>
}

/** PostgreSQL: applies other processes' invalidations and delivers their signals, received over a separate connection that reconnects when it breaks. */
export function subscribeInvalidations(platform: Receiver, database: OpenDatabase): InvalidationSubscription {
  if (database.dialect !== 'postgresql') return { ready: Promise.resolve(), stop: async () => {} }
  const listener = new Listener(platform, database.directUrl)
  return { ready: listener.ready, stop: () => listener.stop() }
}

class Listener {
  readonly ready: Promise<void>
  readonly #platform: Receiver
  readonly #url: string
  #client: Client | null = null
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(platform: Receiver, url: string) {
    this.#platform = platform
    this.#url = url
    this.ready = this.#connect()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = null
    await client?.end().catch(() => {})
  }

  async #connect(): Promise<void> {
    // Not loaded on SQLite.
    const { clientOf } = await import('../database/postgres-hosts.ts')
    const client = clientOf(this.#url, { connectionTimeoutMillis: 1500, keepAlive: true })
    if (this.#stopped) return
    this.#client = client
    client.on('error', () => this.#reconnect(client))
    client.on('end', () => this.#reconnect(client))
    client.on('notification', ({ channel, payload = '' }) =>
      RECEIVERS[channel as keyof typeof RECEIVERS](this.#platform, payload),
    )
    try {
      await client.connect()
      for (const channel of Object.keys(RECEIVERS)) await client.query(`listen ${channel}`)
      // Messages may have been missed.
      this.#platform.caches.invalidate(null, null)
    } catch {
      this.#reconnect(client)
    }
  }

  #reconnect(client: Client): void {
    if (this.#stopped || this.#client !== client) return
    this.#client = null
    client.end().catch(() => {})
    this.#platform.log.debug('reconnecting for cache invalidations')
    this.#timer = setTimeout(() => void this.#connect(), RECONNECT_MS).unref()
  }
}
