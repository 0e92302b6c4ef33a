import { createSignatureScheme } from '../signatures/choose-scheme.ts'
import { createDelivery } from './deliver-events.ts'
import { createSandboxServer } from './sandbox.http.ts'
import { openSandboxStore } from './sandbox.store.ts'
import { readState, type SandboxState } from './state.ts'
import { type SandboxSwitches, switchChangeSchema } from './switches.ts'

export interface SandboxOptions {
  /** The sandbox's SQLite file, created if absent; `:memory:` keeps nothing after close. */
  databasePath: string
  host: string
  /** 0: any free port. */
  port: number
  apiKey: string
  /** Where events are sent. A function is called for each attempt; null means that the receiver does not run yet. */
  webhookUrl: string | (() => string | null)
  /** Standard Webhooks secret, `whsec_` and base64. */
  webhookSecret: string
  /** Epoch milliseconds. */
  now?: () => number
  /** 0 to 1, to spread the retries of deliveries. */
  random?: () => number
  /** First pause after a failed delivery in milliseconds, doubled up to 30 s. */
  retryBaseMs?: number
}

export interface Sandbox {
  url: string
  port: number
  /** Changes the given switches and returns all of them. Throws for a value out of range. */
  switches(change?: Partial<SandboxSwitches>): SandboxSwitches
  state(): SandboxState
  /**
   * Resolves when all due events are delivered; with `scheduled`, all events. Held events do not count. Rejects when the sandbox is closed
   * before.
   */
  idle(options?: { scheduled?: boolean }): Promise<void>
  /** Checks the clock again. Call it after an injected `now` has moved. */
  wake(): void
  /** Ends the server, its timers and connections. Undelivered events stay in the file and are sent after a restart. */
  close(): Promise<void>
}

/** A processor for development and tests: a real HTTP server with its own durable state. Not for production. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const {
    now = Date.now,
    random = Math.random,
    retryBaseMs = 200,
    webhookUrl,
    webhookSecret,
    apiKey,
  } = options
  const problem = createSignatureScheme({ scheme: 'standard-webhooks' }).secretProblem(webhookSecret)
  if (problem !== null) throw new Error(`the sandbox's webhook secret ${problem}`)
  if (apiKey === '') throw new Error("the sandbox's API key is empty")

  const store = openSandboxStore(options.databasePath)
  const delivery = createDelivery(store, { webhookUrl, webhookSecret, now, random, retryBaseMs })
  const closing = new AbortController()
  const { server, settled } = createSandboxServer({ store, delivery, apiKey, now, closing: closing.signal })
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(options.port, options.host, resolve)
    })
  } catch (error) {
    await delivery.close()
    store.close()
    throw error
  }
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : options.port
  delivery.wake()

  let closed: Promise<void> | undefined
  async function closeAll(): Promise<void> {
    closing.abort()
    const ended = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeAllConnections()
    await delivery.close()
    await settled()
    await ended
    store.close()
  }

  return {
    url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`,
    port,
    switches(change = {}) {
      const switches = store.changeSwitches(switchChangeSchema.parse(change))
      delivery.wake()
      return switches
    },
    state: () => readState(store, now()),
    idle: ({ scheduled = false } = {}) => delivery.idle(scheduled),
    wake: delivery.wake,
    close() {
      closed ??= closeAll()
      return closed
    },
  }
}
