import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { formatMoney } from '../../../shared/money.ts'
import type { Delivery } from './deliver-events.ts'
import { acceptCall } from './sandbox.calls.ts'
import type { ObjectKind, SandboxObject, SandboxStore } from './sandbox.store.ts'
import { readState } from './state.ts'
import { switchChangeSchema } from './switches.ts'

const MAX_BODY_BYTES = 64 * 1024
const KINDS: Record<string, ObjectKind> = { '/invoices': 'invoice', '/payouts': 'payout' }

export interface SandboxServerOptions {
  store: SandboxStore
  delivery: Delivery
  apiKey: string
  now: () => number
  /** Ends stalled calls, without effect. */
  closing: AbortSignal
}

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  url: URL
}

class Refused extends Error {
  readonly status: number
  readonly headers: Record<string, string>
  constructor(status: number, detail: string, headers: Record<string, string> = {}) {
    super(detail)
    this.name = 'Refused'
    this.status = status
    this.headers = headers
  }
}

/** The generic contract of a processor, plus `/_sandbox/state`, `/_sandbox/switches` and an invoice's page. */
export function createSandboxServer(options: SandboxServerOptions): {
  server: Server
  settled(): Promise<void>
} {
  const running = new Set<Promise<void>>()
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '/', 'http://sandbox')
    const exchange = url && { request, response, url }
    const answered = (
      exchange ? route(options, exchange) : Promise.reject(new Refused(400, 'unreadable address'))
    )
      .catch((error: unknown) => sendError(response, error))
      .finally(() => running.delete(answered))
    running.add(answered)
  })
  return {
    server,
    /** Resolves when all calls have ended. */
    settled: async () => {
      await Promise.allSettled(running)
    },
  }
}

async function route(options: SandboxServerOptions, exchange: Exchange): Promise<void> {
  const { request, response, url } = exchange
  if (request.method === 'GET' && url.pathname.startsWith('/pay/')) return showInvoice(options, exchange)
  authorize(options, request)
  const kind = KINDS[url.pathname]
  const action = `${request.method} ${url.pathname}`
  if (kind && request.method === 'POST') return call(options, exchange, kind)
  if (kind && request.method === 'GET') return lookUp(options, exchange, kind)
  if (action === 'GET /_sandbox/state')
    return sendJson(response, 200, readState(options.store, options.now()))
  if (action === 'PUT /_sandbox/switches') return changeSwitches(options, exchange)
  if (kind || url.pathname.startsWith('/_sandbox/')) throw new Refused(405, 'method not allowed')
  throw new Refused(404, 'no such path')
}

function authorize(options: SandboxServerOptions, request: IncomingMessage): void {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  const given = digest(request.headers.authorization ?? '')
  if (!timingSafeEqual(given, digest(`Bearer ${options.apiKey}`))) throw new Refused(401, 'wrong API key')
}

async function call(options: SandboxServerOptions, exchange: Exchange, kind: ObjectKind): Promise<void> {
  const { store, delivery, now } = options
  const { request, response } = exchange
  const body = await readJson(request)
  const key = request.headers['idempotency-key']
  if (typeof key !== 'string' || key === '' || key.length > 200) {
    throw new Refused(400, 'an Idempotency-Key is needed')
  }
  if (store.take('stall_next')) await pause(store.switches().stall_ms, undefined, { signal: options.closing })
  if (store.take('limit_next')) throw new Refused(429, 'too many calls', { 'retry-after': '1' })
  if (store.take('error_next')) throw new Refused(500, 'a switch makes the sandbox fail')
  const outcome = acceptCall(store, { kind, key, body, now: now() })
  if (outcome.kind === 'refused') throw new Refused(outcome.status, outcome.detail)
  if (outcome.eventId !== null && store.switches().events_before_answer)
    await delivery.sendNow(outcome.eventId)
  const answer = created(outcome.object, request)
  if (options.closing.aborted || store.take('lose_next_answers')) request.socket.destroy()
  else if (store.take('garble_next_answers')) cutOff(response, answer)
  else sendJson(response, 201, answer)
  // After the answer, because a well-behaved processor's event does not overtake it.
  delivery.wake()
}

function created(object: SandboxObject, request: IncomingMessage) {
  if (object.kind === 'payout') return { id: object.id }
  return { id: object.id, hosted_url: hostedUrl(object, request) }
}

/** Not stored with the invoice, because the sandbox may listen on another port after a restart. */
function hostedUrl(object: SandboxObject, request: IncomingMessage): string {
  return `http://${request.headers.host ?? 'localhost'}/pay/${object.id}`
}

/** Half of the answer, then a broken connection. */
function cutOff(response: ServerResponse, answer: object): void {
  const text = JSON.stringify(answer)
  response.writeHead(201, { 'content-type': 'application/json', 'content-length': String(text.length) })
  response.write(text.slice(0, text.length / 2), () => response.destroy())
}

function lookUp(
  { store, now }: SandboxServerOptions,
  { request, response, url }: Exchange,
  kind: ObjectKind,
): void {
  const reference = url.searchParams.get('reference')
  if (!reference) throw new Refused(400, 'a reference is needed')
  store.settle(now())
  const items = store.objectsByReference(kind, reference).map((object) => ({
    id: object.id,
    reference: object.reference,
    amount: formatMoney(object.amount),
    currency: object.currency,
    status: object.status,
    ...(kind === 'invoice' ? { hosted_url: hostedUrl(object, request) } : {}),
  }))
  sendJson(response, 200, { items })
}

async function changeSwitches({ store, delivery }: SandboxServerOptions, exchange: Exchange): Promise<void> {
  const change = switchChangeSchema.safeParse(await readJson(exchange.request))
  if (!change.success) {
    const issue = change.error.issues[0]
    throw new Refused(422, `${issue?.path.join('.') || 'body'}: ${issue?.message}`)
  }
  const switches = store.changeSwitches(change.data)
  delivery.wake()
  sendJson(exchange.response, 200, switches)
}

/** The page at `hosted_url`. It takes no payment: the sandbox pays by itself. */
function showInvoice({ store, now }: SandboxServerOptions, { response, url }: Exchange): void {
  store.settle(now())
  const invoice = store.objectById(url.pathname.slice('/pay/'.length))
  if (invoice?.kind !== 'invoice') throw new Refused(404, 'no such invoice')
  const text = `Sandbox invoice ${invoice.id}\n${formatMoney(invoice.amount)} ${invoice.currency}, ${invoice.status}\n`
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(text)
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw new Refused(413, 'the body is too large', { connection: 'close' })
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw new Refused(400, 'the body is not JSON')
  }
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

function sendError(response: ServerResponse, error: unknown): void {
  const refused = error instanceof Refused ? error : new Refused(500, 'the sandbox failed')
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const headers = { ...refused.headers, 'content-type': 'application/problem+json' }
  sendJson(response, refused.status, { status: refused.status, detail: refused.message }, headers)
}
