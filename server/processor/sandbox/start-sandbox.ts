import type { AddressInfo } from 'node:net'
import { createSignatureScheme } from '../signatures/choose-scheme.ts'
import { createDelivery, type DeliveryOptions } from './deliver-events.ts'
import { createSandboxServer } from './sandbox.http.ts'
import { openSandboxStore, type SandboxState } from './sandbox.store.ts'
import { type SandboxSwitches, switchChangeSchema } from './switches.ts'

type Tunable = 'now' | 'random' | 'retryBaseMs'

export interface SandboxOptions
  extends Omit<DeliveryOptions, Tunable>,
    Partial<Pick<DeliveryOptions, Tunable>> {
  /** The sandbox's SQLite file, created if absent; `:memory:` keeps nothing after close. */
  databasePath: string
  host: string
  /** 0: any free port. */
  port: number
  apiKey: string
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
  const { now = Date.now, random = Math.random, retryBaseMs = 200, apiKey, host } = options
  const problem = createSignatureScheme({ scheme: 'standard-webhooks' }).secretProblem(options.webhookSecret)
  if (problem !== null) throw new Error(`the sandbox's webhook secret ${problem}`)
  if (apiKey === '') throw new Error("the sandbox's API key is empty")

  const store = openSandboxStore(options.databasePath)
  const delivery = createDelivery(store, { ...options, now, random, retryBaseMs })
  const closing = new AbortController()
  const server = createSandboxServer({ store, delivery, apiKey, now, closing: closing.signal })
  async function closeAll(): Promise<void> {
    // First, so that a stalled call is not answered.
    server.server.closeAllConnections()
    closing.abort()
    await server.close()
    await delivery.close()
    store.close()
  }
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= closeAll()
    return closed
  }
  await server.listen({ host, port: options.port }).catch(async (error: unknown) => {
    await close()
    throw error
  })
  const { port } = server.server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    switches(change = {}) {
      const switches = store.changeSwitches(switchChangeSchema.parse(change))
      delivery.wake()
      return switches
    },
    state: () => store.state(now()),
    idle: ({ scheduled = false } = {}) => delivery.idle(scheduled),
    wake: delivery.wake,
    close,
  }
}
