import type { Dispatcher } from 'undici'
import { z } from 'zod'
import { CURRENCY, formatMoney, parseMoney } from '../../shared/money.ts'
import { type OutgoingCalls, openOutgoingCalls } from '../platform/network/outgoing-calls.ts'
import type { CallOutcome, LookupOutcome, Processor } from './processor.ts'

const MAX_ANSWER_BYTES = 64 * 1024
/** Failures that come before a single byte is sent. */
const NEVER_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'])

export interface HttpProcessorOptions {
  /**
   * Base address; `invoices` and `payouts` are appended to its path. A function is called for each request; `null` means that the
   * processor is not running, which counts as a failed connection.
   */
  url: string | (() => string | null)
  apiKey: string
  /** For the whole call, from connecting to the last byte of the answer, ms. */
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
  /** Redacted from details, in case the answer echoes them. */
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

/** The generic contract over HTTP. `close` ends its connections; calls in flight end as unknown. */
export function createHttpProcessor(options: HttpProcessorOptions): Processor & { close(): Promise<void> } {
  const calls = openOutgoingCalls({ connect: { timeout: options.timeoutMs }, connections: 32 })
  const now = options.now ?? Date.now

  async function call(exchange: Exchange): Promise<CallOutcome> {
    try {
      const outcome = readCallAnswer(await send(calls, options, exchange), now())
      return outcome.kind === 'created' ? outcome : { ...outcome, detail: redact(outcome.detail, exchange) }
    } catch (error) {
      const failure = asFailure(error)
      return { kind: failure.neverConnected ? 'retry' : 'unknown', detail: failure.message }
    }
  }

  async function find(path: Exchange['path'], reference: string): Promise<LookupOutcome> {
    const exchange: Exchange = { method: 'GET', path, reference, secrets: [options.apiKey] }
    try {
      const outcome = readLookupAnswer(await send(calls, options, exchange), reference)
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

async function send(
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
  // Redirects are not followed, so the API key never leaves the configured host.
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
    // Leaving the loop destroys the stream and its connection.
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

/** An HTTP answer, bounded in size. `body` is null when it was not JSON. */
interface HttpAnswer {
  status: number
  retryAfter: string | null
  body: unknown
}

const MAX_DETAIL_LENGTH = 300
const MAX_RETRY_AFTER_MS = 24 * 3_600_000
/** Did not happen: the processor turned the call away before it processed it. */
const NOT_YET = new Set([425, 429])
const MAY_HAVE_HAPPENED = new Set([408, 409])

const id = z.string().regex(/^[^\p{Cc}]{1,200}$/u)
// The page that merchants are sent to. An invalid one is left out; the invoice itself still counts.
const hostedUrl = z
  .string()
  .max(2048)
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''))
  .nullish()
  .catch(null)

const createdSchema = z.object({ id, hosted_url: hostedUrl })
const foundSchema = z.object({
  items: z
    .array(
      z.object({
        id,
        reference: z.string(),
        amount: z.string().transform((text, context) => {
          const amount = parseMoney(text)
          if (amount !== null && amount >= 0) return amount
          context.addIssue({ code: 'custom', message: 'no amount of money' })
          return z.NEVER
        }),
        currency: z.string().regex(/^[A-Z]{3}$/),
        status: z.string().min(1).max(100),
        hosted_url: hostedUrl,
      }),
    )
    .max(100),
})

/** The outcome of a POST, by the table at `CallOutcome`. `now` is epoch ms, for a Retry-After that is a date. */
function readCallAnswer(answer: HttpAnswer, now: number): CallOutcome {
  const { status } = answer
  if (status === 200 || status === 201) {
    const created = createdSchema.safeParse(answer.body)
    if (!created.success) return { kind: 'unknown', detail: `answered ${status} without a readable id` }
    return { kind: 'created', id: created.data.id, hostedUrl: created.data.hosted_url ?? null }
  }
  const detail = describe(answer)
  const pause = retryAfterMs(answer.retryAfter, now)
  const waiting = pause === null ? {} : { retryAfterMs: pause }
  if (NOT_YET.has(status)) return { kind: 'retry', detail, ...waiting }
  if (status >= 400 && status < 500 && !MAY_HAVE_HAPPENED.has(status))
    return { kind: 'refused', status, detail }
  return { kind: 'unknown', detail, ...waiting }
}

/**
 * The outcome of a look-up. An answer that lists another reference is unusable: the processor ignored the filter, so neither its items
 * nor their absence say anything about ours.
 */
function readLookupAnswer(answer: HttpAnswer, reference: string): LookupOutcome {
  if (answer.status !== 200) return { kind: 'unavailable', detail: describe(answer) }
  const found = foundSchema.safeParse(answer.body)
  if (!found.success) {
    const where = found.error.issues[0]?.path.join('.') || 'body'
    return { kind: 'unavailable', detail: `the look-up's answer is malformed (${where})` }
  }
  if (found.data.items.some((item) => item.reference !== reference)) {
    return { kind: 'unavailable', detail: 'the look-up answered other references than the requested one' }
  }
  const items = found.data.items.map(({ hosted_url, ...item }) =>
    hosted_url ? { ...item, hosted_url } : item,
  )
  return { kind: 'found', items }
}

/** `answered STATUS: text`, with the text of the processor's error, if any. */
function describe(answer: HttpAnswer): string {
  const body = z.record(z.string(), z.unknown()).safeParse(answer.body).data ?? {}
  const message = [body.detail, body.message, body.error, body.title].find((one) => typeof one === 'string')
  const text = typeof message === 'string' ? message.toWellFormed().replace(/\p{Cc}+/gu, ' ') : ''
  return `answered ${answer.status}${text === '' ? '' : `: ${text}`}`.slice(0, MAX_DETAIL_LENGTH)
}

function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null
  const pause = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isNaN(pause) ? null : Math.min(Math.max(pause, 0), MAX_RETRY_AFTER_MS)
}
