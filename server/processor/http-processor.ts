import type { Dispatcher } from 'undici'
import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { type OutgoingCalls, openOutgoingCalls } from '../platform/network/outgoing-calls.ts'
import { type HttpAnswer, readCallAnswer, readLookupAnswer } from './http-answer.ts'
import type { CallOutcome, LookupOutcome, Processor } from './port.ts'

const MAX_ANSWER_BYTES = 64 * 1024
/** Failures that come before a single byte is sent. */
const NEVER_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'])

export interface HttpProcessorOptions {
  /**
   * Base address; `invoices` and `payouts` are appended to its path. A function is asked at each call; `null` means that
   * the processor is not running, which counts as a connection that was never made.
   */
  url: string | (() => string | null)
  apiKey: string
  /** For the whole call, from connecting to the last byte of the answer, in milliseconds. */
  timeoutMs: number
  /** Epoch milliseconds. */
  now?: () => number
}

interface Exchange {
  method: 'GET' | 'POST'
  path: 'invoices' | 'payouts'
  reference?: string
  attemptId?: string
  body?: object
  /** What must not turn up in a detail, should the answer echo it. */
  secrets: string[]
}

class CallFailure extends Error {
  readonly neverConnected: boolean
  constructor(message: string, neverConnected: boolean) {
    super(message)
    this.name = 'CallFailure'
    this.neverConnected = neverConnected
  }
}

/** The generic contract over HTTP. `close` ends its connections; calls in flight then end as unknown. */
export function createHttpProcessor(options: HttpProcessorOptions): Processor & { close(): Promise<void> } {
  const calls = openOutgoingCalls({ connect: { timeout: options.timeoutMs }, connections: 32 })
  const now = options.now ?? Date.now

  async function call(exchange: Exchange): Promise<CallOutcome> {
    try {
      const outcome = readCallAnswer(await ask(calls, options, exchange), now())
      return outcome.kind === 'created' ? outcome : { ...outcome, detail: redact(outcome.detail, exchange) }
    } catch (error) {
      const failure = asFailure(error)
      return { kind: failure.neverConnected ? 'retry' : 'unknown', detail: failure.message }
    }
  }

  async function find(path: Exchange['path'], reference: string): Promise<LookupOutcome> {
    const exchange: Exchange = { method: 'GET', path, reference, secrets: [options.apiKey] }
    try {
      const outcome = readLookupAnswer(await ask(calls, options, exchange), reference)
      return outcome.kind === 'found' ? outcome : { ...outcome, detail: redact(outcome.detail, exchange) }
    } catch (error) {
      return { kind: 'unavailable', detail: asFailure(error).message }
    }
  }

  return {
    createInvoice: ({ attemptId, reference, amount, customer }) => {
      const body = { reference, amount: formatMoney(amount), currency: CURRENCY, customer }
      return call({ method: 'POST', path: 'invoices', attemptId, body, secrets: [options.apiKey] })
    },
    createPayout: ({ attemptId, reference, amount, destination }) => {
      const body = { reference, amount: formatMoney(amount), currency: CURRENCY, destination }
      const secrets = [options.apiKey, destination.iban]
      return call({ method: 'POST', path: 'payouts', attemptId, body, secrets })
    },
    findInvoices: (reference) => find('invoices', reference),
    findPayouts: (reference) => find('payouts', reference),
    close: () => calls.close(),
  }
}

async function ask(
  calls: OutgoingCalls,
  options: HttpProcessorOptions,
  exchange: Exchange,
): Promise<HttpAnswer> {
  const base = typeof options.url === 'function' ? options.url() : options.url
  if (base === null) throw new CallFailure('the processor is not running', true)
  const { method, attemptId, body, reference } = exchange
  const url = new URL(exchange.path, base.endsWith('/') ? base : `${base}/`)
  if (reference !== undefined) url.searchParams.set('reference', reference)
  const headers = {
    authorization: `Bearer ${options.apiKey}`,
    accept: 'application/json',
    ...(attemptId === undefined ? {} : { 'idempotency-key': attemptId }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  }
  const text = body === undefined ? null : JSON.stringify(body)
  // No redirect is followed, so the API key never leaves the configured host.
  const response = await calls.request(url, { method, headers, body: text }, options.timeoutMs)
  const retryAfter = response.headers['retry-after']
  return {
    status: response.statusCode,
    retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
    body: parseJson(await boundedText(response.body)),
  }
}

async function boundedText(stream: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    // Leaving the loop destroys the stream, and with it the connection that would go on sending.
    if (size > MAX_ANSWER_BYTES) throw new CallFailure(`the answer is over ${MAX_ANSWER_BYTES} bytes`, false)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function asFailure(error: unknown): CallFailure {
  if (error instanceof CallFailure) return error
  if (error instanceof Error && error.name === 'TimeoutError')
    return new CallFailure('no answer in time', false)
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code'
  const neverConnected = NEVER_CONNECTED.has(code)
  return new CallFailure(
    neverConnected ? `no connection (${code})` : `the connection broke (${code})`,
    neverConnected,
  )
}

function redact(detail: string, exchange: Exchange): string {
  return exchange.secrets
    .filter((secret) => secret !== '')
    .reduce((text, secret) => text.replaceAll(secret, '[redacted]'), detail)
}
