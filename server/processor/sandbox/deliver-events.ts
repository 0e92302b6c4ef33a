import { openOutgoingCalls } from '../../platform/network/outgoing-calls.ts'
import { createSignatureScheme } from '../signatures/choose-scheme.ts'
import type { SandboxEvent, SandboxStore } from './sandbox.store.ts'
import type { SandboxSwitches } from './switches.ts'

const RECEIVER_TIMEOUT_MS = 10_000
const LONGEST_BACKOFF_MS = 30_000
// An injected clock can differ from the timer's, so due events are checked at least this often.
const LONGEST_NAP_MS = 1000

export interface DeliveryOptions {
  /** A function is called for each attempt; null means that the receiver does not run yet. */
  webhookUrl: string | (() => string | null)
  webhookSecret: string
  now: () => number
  /** 0 to 1, for the jitter of retries. */
  random: () => number
  /** First pause after a failed delivery; doubled with each further one. */
  retryBaseMs: number
}

export type Delivery = ReturnType<typeof createDelivery>

/** Sends due events one at a time until each is answered with 2xx: at least once, with a fixed webhook-id. */
export function createDelivery(store: SandboxStore, options: DeliveryOptions) {
  const calls = openOutgoingCalls({ connect: { timeout: RECEIVER_TIMEOUT_MS } })
  const scheme = createSignatureScheme({ scheme: 'standard-webhooks' })
  const { now } = options
  let timer: NodeJS.Timeout | undefined
  let pass: Promise<void> | null = null
  let wokenAgain = false
  let closed = false
  const inFlight = new Map<string, Promise<void>>()
  const waiting = new Set<{ done: () => boolean; resolve: () => void; reject: (error: Error) => void }>()

  /** True when the receiver took the event. */
  async function sendOnce(event: SandboxEvent): Promise<boolean> {
    const url = typeof options.webhookUrl === 'function' ? options.webhookUrl() : options.webhookUrl
    if (url === null) return false
    const rawBody = Buffer.from(event.body)
    const signature = scheme.sign({
      deliveryId: event.id,
      rawBody,
      secret: options.webhookSecret,
      now: now(),
    })
    try {
      const headers = { 'content-type': 'application/json', ...signature }
      const answer = await calls.request(url, { method: 'POST', headers, body: rawBody }, RECEIVER_TIMEOUT_MS)
      await answer.body.dump()
      return answer.statusCode >= 200 && answer.statusCode < 300
    } catch {
      return false
    }
  }

  function isHeld(): boolean {
    const { hold_events, hold_events_until } = store.switches()
    return hold_events || now() < hold_events_until
  }

  /** One attempt at a time for each event: a second caller waits for the attempt under way. */
  function attempt(id: string): Promise<void> {
    const running = inFlight.get(id) ?? attemptOnce(id).finally(() => inFlight.delete(id))
    inFlight.set(id, running)
    return running
  }

  async function attemptOnce(id: string): Promise<void> {
    const event = store.eventById(id)
    if (!event || event.delivered_at !== null) return
    const taken = await sendOnce(event)
    if (closed) return
    if (taken) {
      store.recordArrival(id, store.switches().duplicate_events, now())
      return
    }
    const pause = Math.min(options.retryBaseMs * 2 ** Math.min(event.attempts, 20), LONGEST_BACKOFF_MS)
    store.recordFailure(id, now() + Math.ceil(pause * (0.5 + options.random() / 2)))
  }

  async function sendDue(): Promise<void> {
    store.settle(now())
    const switches = store.switches()
    const postponed = new Set<string>()
    for (const id of sendingOrder(store.sendable(now()), switches)) {
      if (closed || isHeld()) return
      if (postponed.has(id)) continue
      await attempt(id)
      if (closed) return
      // The other copies of an event whose delivery failed wait for its backoff too.
      if ((store.eventById(id)?.next_attempt_at ?? 0) > now()) postponed.add(id)
    }
  }

  function wake(): void {
    if (closed) return
    if (pass) {
      wokenAgain = true
      return
    }
    clearTimeout(timer)
    pass = sendDue().finally(() => {
      pass = null
      if (closed) return
      for (const waiter of [...waiting]) if (waiter.done()) waiter.resolve()
      scheduleNext()
    })
  }

  function scheduleNext(): void {
    if (wokenAgain) {
      wokenAgain = false
      wake()
      return
    }
    const { hold_events, hold_events_until } = store.switches()
    const heldUntil = !hold_events && now() < hold_events_until ? hold_events_until : null
    const at = heldUntil ?? store.nextMoment(hold_events)
    if (at !== null) timer = setTimeout(wake, Math.min(Math.max(at - now(), 0), LONGEST_NAP_MS))
  }

  return {
    /** Call it after anything that may have made an event due. */
    wake,

    /** Settles one event and tries once to deliver it, before other due events. */
    async sendNow(id: string): Promise<void> {
      store.settle(now())
      if (!closed && !isHeld()) await attempt(id)
    },

    /** Resolves when all due events are delivered; with `scheduled`, also those that are due later. */
    idle(scheduled: boolean): Promise<void> {
      const done = () => isHeld() || store.undelivered(scheduled ? Number.MAX_SAFE_INTEGER : now()) === 0
      return new Promise<void>((resolve, reject) => {
        const waiter = {
          done,
          resolve: () => {
            waiting.delete(waiter)
            resolve()
          },
          reject,
        }
        waiting.add(waiter)
        wake()
      })
    },

    /** Ends timers and connections; undelivered events stay in the file. */
    async close(): Promise<void> {
      closed = true
      clearTimeout(timer)
      for (const { reject } of waiting) reject(new Error('the sandbox was closed while events were due'))
      await calls.close()
      await pass
    },
  }
}

/** Ids in the order of sending, once for each copy to send. */
function sendingOrder(events: SandboxEvent[], switches: SandboxSwitches): string[] {
  const copies = events.flatMap((event) =>
    // At least one: after the switch was lowered, one more copy completes the event.
    Array.from({ length: Math.max(1, switches.duplicate_events + 1 - event.copies_sent) }, () => event.id),
  )
  if (switches.event_order === 'reversed') return copies.reverse()
  if (switches.event_order === 'as_made') return copies
  const random = seeded(switches.order_seed)
  for (let last = copies.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1))
    const [a, b] = [copies[last], copies[other]]
    if (a !== undefined && b !== undefined) [copies[last], copies[other]] = [b, a]
  }
  return copies
}

/** mulberry32: the same sequence on every machine. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
