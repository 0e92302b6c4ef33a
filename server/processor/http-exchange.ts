import type { Dispatcher } from 'undici'
import { z } from 'zod'
import { jsonOrNull } from '../../shared/json.ts'
import { parseMoney } from '../../shared/money.ts'
import { moneyInput } from '../../shared/schemas/common.ts'
import type { OutgoingCalls } from '../platform/network/outgoing-calls.ts'
import type { CallOutcome } from './processor.ts'

/*
 * What all HTTP adapters share: a bounded exchange, and what its failures mean by the table at `CallOutcome`.
 */

/** A page of a hundred records, with all that a processor may say of each. */
export const MAX_ANSWER_BYTES = 1024 * 1024
const MAX_DETAIL_LENGTH = 300
const MAX_RETRY_AFTER_MS = 24 * 3_600_000
/** Failures that come before a single byte is sent. */
const NEVER_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'])
/** Did not happen: the processor turned the call away before it processed it. */
const NOT_YET = new Set([425, 429])
const MAY_HAVE_HAPPENED = new Set([408, 409])

export class CallFailure extends Error {
  readonly neverConnected: boolean
  constructor(message: string, neverConnected: boolean) {
    super(message)
    this.name = 'CallFailure'
    this.neverConnected = neverConnected
  }
}

interface HttpRequest {
  method: 'GET' | 'POST' | 'PUT'
  url: URL
  headers: Record<string, string>
  body?: object | undefined
  /** For the whole call, from connecting to the last byte of the answer, ms. */
  timeoutMs: number
}

/** An HTTP answer, bounded in size. `body` is null when it was not JSON. */
export interface HttpAnswer {
  status: number
  retryAfter: string | null
  /** The `date` header. */
  date: string | null
  body: unknown
}

/** Sends a request. Redirects are not followed, so the API key never leaves the configured host. */
export async function exchange(
  calls: OutgoingCalls,
  { method, url, headers, body, timeoutMs }: HttpRequest,
): Promise<HttpAnswer> {
  const all = {
    accept: 'application/json',
    ...headers,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  }
  const text = body === undefined ? null : JSON.stringify(body)
  const response = await calls.request(url, { method, headers: all, body: text }, timeoutMs)
  const headerText = (name: string) => {
    const value = response.headers[name]
    return typeof value === 'string' ? value : null
  }
  return {
    status: response.statusCode,
    retryAfter: headerText('retry-after'),
    date: headerText('date'),
    body: jsonOrNull(await boundedText(response.body)),
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

export function asFailure(error: unknown): CallFailure {
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

/** The outcome of a POST. `secrets` are redacted, in case the answer echoes them. */
export async function callOutcome(
  send: () => Promise<HttpAnswer>,
  read: (answer: HttpAnswer) => CallOutcome,
  secrets: readonly string[],
): Promise<CallOutcome> {
  try {
    return redacted(read(await send()), secrets)
  } catch (error) {
    const failure = asFailure(error)
    return { kind: failure.neverConnected ? 'retry' : 'unknown', detail: failure.message }
  }
}

export interface Unavailable {
  kind: 'unavailable'
  detail: string
}

export function unavailable(detail: string): Unavailable {
  return { kind: 'unavailable', detail }
}

/** What `read` makes of an answer in the form of `schema`. Any other status than 200 and any other form is `unavailable`. */
export async function lookUp<Body, Outcome extends object>(
  send: () => Promise<HttpAnswer>,
  {
    schema,
    read,
    describe,
    secrets,
  }: {
    schema: z.ZodType<Body>
    read: (body: Body) => Outcome | Unavailable
    describe: (answer: HttpAnswer) => string
    secrets: readonly string[]
  },
): Promise<Outcome | Unavailable> {
  try {
    const answer = await send()
    if (answer.status !== 200) return redacted(unavailable(describe(answer)), secrets)
    const { data, error } = schema.safeParse(answer.body)
    if (error) return unavailable(`the answer is malformed (${error.issues[0]?.path.join('.') || 'body'})`)
    return redacted(read(data as Body), secrets)
  } catch (error) {
    return unavailable(asFailure(error).message)
  }
}

/** Decimal rupees of the generic contract, read as paisa. */
export const moneyAmount = moneyInput.transform((text) => parseMoney(text) ?? 0)

/** A text of the processor's that is stored and shown. */
export const plainText = z.string().regex(/^[^\p{Cc}]{1,200}$/u)

/** The outcome of an answer that is no success. `now` is epoch ms, for a Retry-After that is a date. */
export function outcomeOfRefusal(
  { status, retryAfter }: HttpAnswer,
  detail: string,
  now: number,
): CallOutcome {
  const pause = retryAfterMs(retryAfter, now)
  const waiting = pause === null ? {} : { retryAfterMs: pause }
  if (NOT_YET.has(status)) return { kind: 'retry', detail, ...waiting }
  if (status >= 400 && status < 500 && !MAY_HAVE_HAPPENED.has(status))
    return { kind: 'refused', status, detail }
  return { kind: 'unknown', detail, ...waiting }
}

function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null
  const pause = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isNaN(pause) ? null : Math.min(Math.max(pause, 0), MAX_RETRY_AFTER_MS)
}

/** `answered STATUS: text`, bounded, with the text of the processor's error, if any. */
export function describeAnswer(status: number, message: unknown): string {
  const text = typeof message === 'string' ? message.toWellFormed().replace(/\p{Cc}+/gu, ' ') : ''
  return `answered ${status}${text === '' ? '' : `: ${text}`}`.slice(0, MAX_DETAIL_LENGTH)
}

/** Removes secrets from the detail of an outcome. */
function redacted<Outcome extends object>(outcome: Outcome, secrets: readonly string[]): Outcome {
  if (!('detail' in outcome) || typeof outcome.detail !== 'string') return outcome
  const detail = secrets
    .filter((secret) => secret !== '')
    .reduce((text, secret) => text.replaceAll(secret, '[redacted]'), outcome.detail)
  return { ...outcome, detail }
}
