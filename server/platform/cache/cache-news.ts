import { randomUUID } from 'node:crypto'
import type { Client } from 'pg'
import { z } from 'zod'
import type { OpenDatabase } from '../database/open-database.ts'
import type { Platform } from '../platform.ts'
import type { Caches } from './caches.ts'

const CHANNEL = 'affiliate_caches'
const RECONNECT_MS = 1000
/** Which process said it: nobody needs to hear of what it did itself. */
const SELF = randomUUID()

const news = z.tuple([z.string(), z.string(), z.string().nullable()])

/** PostgreSQL: has other processes drop at once what this one drops. A hint: what is lost, the caches' own age makes good. */
export function tellOthers(caches: Caches, database: OpenDatabase): void {
  if (database.dialect !== 'postgresql') return
  caches.onDrop((name, key) => {
    const text = JSON.stringify([SELF, name, key])
    database.pool.query('select pg_notify($1, $2)', [CHANNEL, text]).catch(() => {})
  })
}

export interface Hearing {
  /** Resolves when the news of others is heard. */
  ready: Promise<void>
  stop(): Promise<void>
}

/** PostgreSQL: drops what other processes have changed, told over a connection of its own that is made anew when it breaks. */
export function hearOthers(platform: Pick<Platform, 'caches' | 'log'>, database: OpenDatabase): Hearing {
  if (database.dialect !== 'postgresql') return { ready: Promise.resolve(), stop: async () => {} }
  const listener = new Listener(platform, database.url)
  return { ready: listener.ready, stop: () => listener.stop() }
}

class Listener {
  readonly ready: Promise<void>
  readonly #platform: Pick<Platform, 'caches' | 'log'>
  readonly #url: string
  #client: Client | null = null
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(platform: Pick<Platform, 'caches' | 'log'>, url: string) {
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
    // Loaded only where it is needed, like the database itself.
    const { Client } = (await import('pg')).default
    const client = new Client({
      connectionString: this.#url,
      connectionTimeoutMillis: 1500,
      keepAlive: true,
    })
    if (this.#stopped) return
    this.#client = client
    client.on('error', () => this.#again(client))
    client.on('end', () => this.#again(client))
    client.on('notification', ({ payload }) => this.#hear(payload))
    try {
      await client.connect()
      await client.query(`listen ${CHANNEL}`)
      // Whatever was said while nobody listened.
      this.#platform.caches.forget(null, null)
    } catch {
      this.#again(client)
    }
  }

  #again(client: Client): void {
    if (this.#stopped || this.#client !== client) return
    this.#client = null
    client.end().catch(() => {})
    this.#platform.log.debug('the connection for news of other processes is made anew')
    this.#timer = setTimeout(() => void this.#connect(), RECONNECT_MS).unref()
  }

  #hear(payload: string | undefined): void {
    const parsed = news.safeParse(jsonOf(payload))
    if (!parsed.success) return
    const [sender, name, key] = parsed.data
    if (sender !== SELF) this.#platform.caches.forget(name, key)
  }
}

function jsonOf(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch {
    return null
  }
}
