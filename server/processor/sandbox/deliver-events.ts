import { createHash } from 'node:crypto'
import { openOutgoingCalls } from '../../platform/network/outgoing-calls.ts'
import { createSignatureScheme } from '../signatures/choose-scheme.ts'
import type { SandboxEvent, SandboxStore } from './sandbox.store.ts'
import type { SandboxSwitches } from './switches.ts'

const RECEIVER_TIMEOUT_MS = 10_000
const LONGEST_BACKOFF_MS = 30_000
// An injected clock can differ from the timer's, so due events are checked at least this often.
const LONGEST_NAP_MS = 1000

export interface DeliveryOptions {
  /** Where events are sent. A function is called for each attempt; null means that the receiver does not run yet. */
  webhookUrl: string | (() => string | null)
  /** Standard Webhooks secret, `whsec_` and base64. */
  webhookSecret: string
  /** Epoch milliseconds. */
  now: () => number
  /** 0 to 1, for the jitter of retries. */
  random: () => number
  /** First pause after a failed delivery, ms; doubled with each further one, up to 30 s. */
  retryBaseMs: number
}

export type Delivery = ReturnType<typeof createDelivery>

/** Sends due events one at a time until each is answered with 2xx: at least once, with a fixed webhook-id. */
export function createDelivery(store: SandboxStore, options: DeliveryOptions) {
  const calls = openOutgoingCalls({ connect: { timeout: RECEIVER_TIMEOUT_MS } })
  const scheme = createSignatureScheme({ scheme: 'standard-webhooks' })
  const { now } = options
  const inFlight = new Map<string, Promise<void>>()
  let closed = false
  let wake = () => {}
  let pass = Promise.withResolvers<void>()
  const running = run()

  /** True when the receiver took the event. */
  async function sendOnce(event: SandboxEvent): Promise<boolean> {
    const url = typeof options.webhookUrl === 'function' ? options.webhookUrl() : options.webhookUrl
    if (url === null) return false
    const body = Buffer.from(event.body)
    const input = { deliveryId: event.id, rawBody: body, secret: options.webhookSecret, now: now() }
    try {
      const headers = { 'content-type': 'application/json', ...scheme.sign(input) }
      const answer = await calls.request(url, { method: 'POST', headers, body }, RECEIVER_TIMEOUT_MS)
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
    const event = store.events.get(id)
    if (!event || event.delivered_at !== null || event.next_attempt_at > now()) return
    const taken = await sendOnce(event)
    if (closed) return
    const attempts = event.attempts + 1
    if (taken) {
      const copies_sent = event.copies_sent + 1
      const delivered_at = copies_sent > store.switches().duplicate_events ? now() : null
      store.events.put({ ...event, attempts, copies_sent, delivered_at })
      return
    }
    const pause = Math.min(options.retryBaseMs * 2 ** Math.min(event.attempts, 20), LONGEST_BACKOFF_MS)
    const next_attempt_at = now() + Math.ceil(pause * (0.5 + options.random() / 2))
    store.events.put({ ...event, attempts, next_attempt_at })
  }

  async function run(): Promise<void> {
    for (;;) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve
      })
      await sendDue()
      pass.resolve()
      pass = Promise.withResolvers()
      if (closed) return
      const nap = nextMoment() - now()
      const timer = nap < Infinity ? setTimeout(wake, Math.min(Math.max(nap, 0), LONGEST_NAP_MS)) : undefined
      await woken
      clearTimeout(timer)
    }
  }

  async function sendDue(): Promise<void> {
    store.settle(now())
    const due = undelivered().filter((event) => event.next_attempt_at <= now())
    for (const id of sendingOrder(due, store.switches())) {
      if (closed || isHeld()) return
      await attempt(id)
    }
  }

  function undelivered(): SandboxEvent[] {
    return [...store.events.values()].filter((event) => event.delivered_at === null)
  }

  /** When there is something to do next. While events are held, only money moves. */
  function nextMoment(): number {
    const { hold_events, hold_events_until } = store.switches()
    const moments = undelivered().map((event) => {
      if (!event.settled) return event.due_at
      return hold_events ? Infinity : Math.max(event.next_attempt_at, hold_events_until)
    })
    return moments.reduce((first, moment) => Math.min(first, moment), Infinity)
  }

  return {
    /** Call it after anything that may have made an event due. */
    wake: () => wake(),

    /** Settles one event and tries once to deliver it, before other due events. */
    async sendNow(id: string): Promise<void> {
      store.settle(now())
      if (!closed && !isHeld()) await attempt(id)
    },

    /** Resolves when all due events are delivered; with `scheduled`, also those that are due later. */
    async idle(scheduled: boolean): Promise<void> {
      wake()
      do {
        await pass.promise
        if (isHeld() || undelivered().every(({ due_at }) => !scheduled && due_at > now())) return
      } while (!closed)
      throw new Error('the sandbox was closed while events were due')
    },

    /** Ends timers and connections; undelivered events stay in the file. */
    async close(): Promise<void> {
      closed = true
      wake()
      await calls.close()
      await running
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
  const keyed = copies.map((id, place) => {
    const key = createHash('sha256').update(`${switches.order_seed} ${place}`).digest('hex')
    return { id, key }
  })
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ id }) => id)
}
