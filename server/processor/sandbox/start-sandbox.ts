import type { AddressInfo } from 'node:net'
import fastify, { type FastifyError, type FastifyInstance } from 'fastify'
import { v7 as uuid } from 'uuid'
import { z } from 'zod'
import { CURRENCY, formatMoney } from '../../../shared/money.ts'
import { NO_SCHEMAS } from '../../platform/api/no-schemas.ts'
import { isoTime } from '../../platform/clock.ts'
import { isSameText } from '../../platform/crypto/vault.ts'
import { openOutgoingCalls } from '../../platform/network/outgoing-calls.ts'
import { moneyAmount } from '../http-exchange.ts'
import { standardWebhooks } from '../signatures/choose-scheme.ts'
import { type SandboxRecord, SandboxStore, type SandboxSwitches } from './sandbox-state.ts'

const MAX_BODY_BYTES = 64 * 1024
const RECEIVER_TIMEOUT_MS = 10_000
const LONGEST_BACKOFF_MS = 30_000
// An injected clock can differ from the timer's, so due events are checked at least this often.
const LONGEST_NAP_MS = 1000

export interface SandboxOptions {
  /** The sandbox's SQLite file, created if absent; `:memory:` keeps nothing after close. */
  databasePath: string
  host: string
  /** 0: any free port. */
  port: number
  apiKey: string
  /** Where events are sent; `null` while the receiver does not run. Called for each attempt. */
  webhookUrl: () => string | null
  /** Standard Webhooks secret, `whsec_` and base64. */
  webhookSecret: string
  /** Epoch milliseconds. */
  now?: () => number
  /** 0 to 1, for the jitter of retries. */
  random?: () => number
  /** First pause after a failed delivery, ms; doubled with each further one, up to 30 s. */
  retryBaseMs?: number
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>

/** A processor for development and tests: a real HTTP server with its own durable state. Not for production. */
export async function startSandbox(options: SandboxOptions) {
  const { now = Date.now, apiKey, host, webhookSecret } = options
  const problem = standardWebhooks.secretProblem(webhookSecret)
  if (problem !== null) throw new Error(`the sandbox's webhook secret ${problem}`)
  if (apiKey === '') throw new Error("the sandbox's API key is empty")
  const store = new SandboxStore(options.databasePath)
  const delivery = startDelivery(store, options)
  const change = (switches: Partial<SandboxSwitches>) => {
    const changed = store.change(switches)
    delivery.wake()
    return changed
  }
  const server = createServer(apiKey)
  registerCalls(server, store, now, delivery.wake)
  server.get('/_sandbox/state', async () => stateOf(store, now()))
  server.put('/_sandbox/switches', async ({ body }) => change(body as Partial<SandboxSwitches>))
  const closeAll = async () => {
    server.server.closeAllConnections()
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
    /** Changes switches and returns all of them. Throws `ZodError` for a value out of range. */
    switches: (switches: Partial<SandboxSwitches> = {}) => change(switches),
    state: () => stateOf(store, now()),
    /** Checks the clock again. Call it after an injected `now` has moved. */
    wake: delivery.wake,
    /** Ends the server, its timers and connections. Undelivered events stay in the file and are sent after a restart. */
    close,
  }
}

function refusal(statusCode: number, detail: string): Error {
  return Object.assign(new Error(detail), { statusCode })
}

function createServer(apiKey: string): FastifyInstance {
  const server = fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    ...NO_SCHEMAS,
  })
  server.setErrorHandler<FastifyError | z.ZodError>((error, _request, reply) => {
    const status = error instanceof z.ZodError ? 422 : (error.statusCode ?? 500)
    const detail = error instanceof z.ZodError ? z.prettifyError(error) : error.message
    return reply.code(status).type('application/problem+json').send(JSON.stringify({ status, detail }))
  })
  server.addHook('onRequest', async ({ url, headers }) => {
    if (url.startsWith('/pay/') || isSameText(headers.authorization ?? '', `Bearer ${apiKey}`)) return
    throw refusal(401, 'wrong API key')
  })
  return server
}

const text = z.string().min(1).max(500)
const common = {
  reference: text,
  amount: moneyAmount.refine((paisa) => paisa > 0),
  currency: z.literal(CURRENCY),
}
const CALLS = {
  invoice: z.strictObject({ ...common, customer: z.strictObject({ id: text, email: text, name: text }) }),
  payout: z.strictObject({ ...common, destination: z.strictObject({ iban: text, account_title: text }) }),
}

/** The generic contract of a processor, and the page of an invoice. */
function registerCalls(server: FastifyInstance, store: SandboxStore, now: () => number, wake: () => void) {
  for (const kind of ['invoice', 'payout'] as const) {
    server.post(`/${kind}s`, async ({ headers, body, host }, reply) => {
      const key = headers['idempotency-key']
      if (typeof key !== 'string' || key === '' || key.length > 200) {
        throw refusal(400, 'an Idempotency-Key is needed')
      }
      const record = acceptCall(store, kind, key, body, now())
      if (store.take('lose_next_answers')) reply.hijack().raw.destroy()
      else reply.code(201).send({ id: record.id, ...hostedUrl(record, host) })
      // After the answer, because a well-behaved processor's event does not overtake it.
      wake()
      return reply
    })
    server.get<{ Querystring: { reference?: string } }>(`/${kind}s`, async ({ query, host }) => {
      if (!query.reference) throw refusal(400, 'a reference is needed')
      const found = [...store.records.values()].filter(
        (record) => record.kind === kind && record.reference === query.reference,
      )
      return { items: found.map((record) => ({ ...shown(record, now()), ...hostedUrl(record, host) })) }
    })
  }
  // The page at `hosted_url`. It takes no payment: the sandbox pays by itself.
  server.get<{ Params: { id: string } }>('/pay/:id', async ({ params }) => {
    const invoice = [...store.records.values()].find(({ id, kind }) => kind === 'invoice' && id === params.id)
    if (!invoice) throw refusal(404, 'no such invoice')
    const { id, amount, currency, status } = shown(invoice, now())
    return `Sandbox invoice ${id}\n${amount} ${currency}, ${status}\n`
  })
}

/** One record for one idempotency key. */
function acceptCall(
  store: SandboxStore,
  kind: SandboxRecord['kind'],
  key: string,
  body: unknown,
  now: number,
): SandboxRecord {
  const parsed = CALLS[kind].safeParse(body)
  const request = JSON.stringify(parsed.data)
  const known = store.records.get(key)
  if (known && (known.kind !== kind || known.request !== request)) {
    throw refusal(409, 'this idempotency key was used with another body')
  }
  if (known) return known
  if (parsed.error) throw parsed.error
  const { reference, amount } = parsed.data
  const isFailing = kind === 'payout' && store.take('fail_next_payouts')
  const id = `${kind === 'invoice' ? 'inv' : 'po'}_${uuid()}`
  const event = {
    type: kind === 'invoice' ? 'billing.payment_confirmed' : isFailing ? 'payout.failed' : 'payout.confirmed',
    data: {
      ...(kind === 'invoice'
        ? { invoice_id: id, payment_reference: `pay_${uuid()}` }
        : { payout_id: id, reference }),
      amount: formatMoney(amount),
      currency: CURRENCY,
      ...(isFailing ? { reason: store.switches.failure_reason } : {}),
    },
  }
  const due_at = now + store.switches.event_delay_ms
  const record: SandboxRecord = {
    id,
    kind,
    key,
    request,
    reference,
    amount,
    created_at: now,
    due_at,
    outcome: isFailing ? 'failed' : 'paid',
    event_id: `evt_${uuid()}`,
    body: JSON.stringify(event),
    next_attempt_at: due_at,
    attempts: 0,
    copies_sent: 0,
    delivered_at: null,
  }
  store.put(record)
  return record
}

function shown({ id, kind, reference, amount, due_at, outcome }: SandboxRecord, now: number) {
  const status = now >= due_at ? outcome : kind === 'invoice' ? 'open' : 'processing'
  return { id, reference, amount: formatMoney(amount), currency: CURRENCY, status }
}

/** Not stored with the invoice, because the sandbox may listen on another port after a restart. */
function hostedUrl({ kind, id }: SandboxRecord, host: string) {
  return kind === 'invoice' ? { hosted_url: `http://${host}/pay/${id}` } : {}
}

/** Everything in the sandbox, oldest first. */
function stateOf({ records, switches }: SandboxStore, now: number) {
  const all = [...records.values()]
  const ofKind = (kind: SandboxRecord['kind']) =>
    all
      .filter((record) => record.kind === kind)
      .map((record) => ({ ...shown(record, now), created_at: isoTime(record.created_at) }))
  const events = all.map(({ id, event_id, body, due_at, attempts, copies_sent, delivered_at }) => ({
    id: event_id,
    object_id: id,
    body: JSON.parse(body) as unknown,
    due_at: isoTime(due_at),
    attempts,
    copies_sent,
    delivered_at: delivered_at === null ? null : isoTime(delivered_at),
  }))
  return { invoices: ofKind('invoice'), payouts: ofKind('payout'), events, switches }
}

/** Sends due events one at a time until each is answered with 2xx: at least once, with a fixed webhook-id. */
function startDelivery(store: SandboxStore, options: SandboxOptions) {
  const {
    webhookUrl,
    webhookSecret: secret,
    now = Date.now,
    random = Math.random,
    retryBaseMs = 200,
  } = options
  const calls = openOutgoingCalls({ connect: { timeout: RECEIVER_TIMEOUT_MS } })
  let closed = false
  let wake = () => {}
  const running = run()

  async function run(): Promise<void> {
    while (!closed) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve
      })
      for (const record of open()) {
        if (!closed && dueAt(record) <= now()) await attempt(record)
      }
      const next = open().reduce((first, record) => Math.min(first, dueAt(record)), Infinity) - now()
      const timer =
        next < Infinity ? setTimeout(wake, Math.min(Math.max(next, 0), LONGEST_NAP_MS)) : undefined
      if (!closed) await woken
      clearTimeout(timer)
    }
  }

  function open(): SandboxRecord[] {
    return [...store.records.values()].filter(({ delivered_at }) => delivered_at === null)
  }

  function dueAt({ next_attempt_at }: SandboxRecord): number {
    return Math.max(next_attempt_at, store.switches.hold_events_until)
  }

  async function attempt(record: SandboxRecord): Promise<void> {
    const isTaken = await send(record)
    if (closed) return
    const attempts = record.attempts + 1
    if (isTaken) {
      const copies_sent = record.copies_sent + 1
      const delivered_at = copies_sent > store.switches.duplicate_events ? now() : null
      store.put({ ...record, attempts, copies_sent, delivered_at })
      return
    }
    const pause = Math.min(retryBaseMs * 2 ** Math.min(record.attempts, 20), LONGEST_BACKOFF_MS)
    store.put({ ...record, attempts, next_attempt_at: now() + Math.ceil(pause * (0.5 + random() / 2)) })
  }

  /** True when the receiver took the event. */
  async function send({ event_id: deliveryId, body }: SandboxRecord): Promise<boolean> {
    const url = webhookUrl()
    if (url === null) return false
    const rawBody = Buffer.from(body)
    const signature = standardWebhooks.sign({ deliveryId, rawBody, secret, now: now() })
    const headers = { 'content-type': 'application/json', ...signature }
    try {
      const answer = await calls.request(url, { method: 'POST', headers, body: rawBody }, RECEIVER_TIMEOUT_MS)
      await answer.body.dump()
      return answer.statusCode >= 200 && answer.statusCode < 300
    } catch {
      return false
    }
  }

  return {
    /** Call it after anything that may have made an event due. */
    wake: () => wake(),
    async close(): Promise<void> {
      closed = true
      wake()
      await calls.close()
      await running
    },
  }
}
