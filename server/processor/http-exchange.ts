import type { Dispatcher } from 'undici'
import { z } from 'zod'
import { jsonOrNull } from '../../shared/json.ts'
import { parseMoney } from '../../shared/money.ts'
import { moneyInput } from '../../shared/schemas/common.ts'
import { type OutgoingCalls, openOutgoingCalls } from '../platform/network/outgoing-calls.ts'
import type { CallOutcome, Unavailable } from './processor.ts'

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

class CallFailure extends Error {
  readonly neverConnected: boolean
  constructor(message: string, neverConnected: boolean) {
    super(message)
    this.neverConnected = neverConnected
  }
}

export interface ApiOptions {
  /** The address that paths are appended to. Asked for each request; `null`: the processor is not running, as a failed connection. */
  base: () => string | null
  /** Sent with every request. */
  headers: Record<string, string>
  /** The key among them, redacted from details in case an answer echoes it. */
  secret: string
  /** For a whole call, from connecting to the last byte of the answer, ms. */
  timeoutMs: number
  /** Epoch ms, for a Retry-After that is a date. */
  now?: (() => number) | undefined
  /** What an answer that is no success says. */
  errorText(body: unknown): string | undefined
}

interface ApiRequest {
  method?: 'GET' | 'POST' | 'PUT'
  path: string
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: object
  /** Further secrets that an answer may echo. */
  secrets?: readonly string[]
}

/** An HTTP answer, bounded in size. `body` is null when it was not JSON. */
export interface HttpAnswer {
  status: number
  retryAfter: string | null
  /** The `date` header. */
  date: string | null
  body: unknown
}

/** The API of one processor over HTTP. */
export class ProcessorApi {
  readonly #options: ApiOptions
  readonly #calls: OutgoingCalls

  constructor(options: ApiOptions) {
    this.#options = options
    this.#calls = openOutgoingCalls({ connect: { timeout: options.timeoutMs }, connections: 32 })
  }

  /** Does not follow redirects, so the key never leaves the configured host. Failures of the network are thrown; see `failureText`. */
  async send({ method = 'GET', path, query = {}, headers, body }: ApiRequest): Promise<HttpAnswer> {
    const { base, timeoutMs, headers: common } = this.#options
    const root = base()
    if (root === null) throw new CallFailure('the processor is not running', true)
    const url = new URL(`${root.replace(/\/$/, '')}/${path}`)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const request = {
      method,
      headers: {
        accept: 'application/json',
        ...common,
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    }
    const answer = await this.#calls.request(url, request, timeoutMs)
    const headerText = (name: string) => {
      const value = answer.headers[name]
      return typeof value === 'string' ? value : null
    }
    return {
      status: answer.statusCode,
      retryAfter: headerText('retry-after'),
      date: headerText('date'),
      body: jsonOrNull(await boundedText(answer.body)),
    }
  }

  /** The outcome of a POST: what `read` makes of a success in the form of `schema`. `needs` says what that must show. */
  async call<Body>(
    request: ApiRequest,
    schema: z.ZodType<Body>,
    needs: string,
    read: (body: Body, status: number) => CallOutcome,
  ): Promise<CallOutcome> {
    try {
      const answer = await this.send({ method: 'POST', ...request })
      const { status } = answer
      if (status !== 200 && status !== 201) return this.#redacted(request, this.#refusal(answer))
      const { data, success } = schema.safeParse(answer.body)
      if (!success) return { kind: 'unknown', detail: `answered ${status} without a readable ${needs}` }
      return this.#redacted(request, read(data, status))
    } catch (error) {
      const { neverConnected, message } = asFailure(error)
      return { kind: neverConnected ? 'retry' : 'unknown', detail: message }
    }
  }

  /** What `read` makes of an answer in the form of `schema`. Any other status than 200 and any other form is `unavailable`. */
  async lookUp<Body, Outcome extends object>(
    request: ApiRequest,
    schema: z.ZodType<Body>,
    read: (body: Body) => Outcome | Unavailable,
  ): Promise<Outcome | Unavailable> {
    try {
      const answer = await this.send(request)
      if (answer.status !== 200) return this.#redacted(request, unavailable(this.describe(answer)))
      const { data, error } = schema.safeParse(answer.body)
      if (error) return unavailable(`the answer is malformed (${error.issues[0]?.path.join('.') || 'body'})`)
      return this.#redacted(request, read(data as Body))
    } catch (error) {
      return unavailable(asFailure(error).message)
    }
  }

  describe({ status, body }: HttpAnswer): string {
    return describeAnswer(status, this.#options.errorText(body) ?? '')
  }

  /** Calls in flight end as unknown. */
  close(): Promise<void> {
    return this.#calls.close()
  }

  /** The outcome of an answer that is no success. */
  #refusal(answer: HttpAnswer): CallOutcome {
    const { status, retryAfter } = answer
    const detail = this.describe(answer)
    const pause = retryAfterMs(retryAfter, (this.#options.now ?? Date.now)())
    const waiting = pause === null ? {} : { retryAfterMs: pause }
    if (NOT_YET.has(status)) return { kind: 'retry', detail, ...waiting }
    if (status >= 400 && status < 500 && !MAY_HAVE_HAPPENED.has(status))
      return { kind: 'refused', status, detail }
    return { kind: 'unknown', detail, ...waiting }
  }

  /** Removes secrets from the detail of an outcome. */
  #redacted<Outcome extends object>({ secrets = [] }: ApiRequest, outcome: Outcome): Outcome {
    if (!('detail' in outcome) || typeof outcome.detail !== 'string') return outcome
    const detail = [this.#options.secret, ...secrets]
      .filter((secret) => secret !== '')
      .reduce((text, secret) => text.replaceAll(secret, '[redacted]'), outcome.detail)
    return { ...outcome, detail }
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

function asFailure(error: unknown): CallFailure {
  if (error instanceof CallFailure) return error
  if (error instanceof Error && error.name === 'TimeoutError')
    return new CallFailure('no answer in time', false)
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code'
  const neverConnected = NEVER_CONNECTED.has(code)
  const what = neverConnected ? 'no connection' : 'the connection broke'
  return new CallFailure(`${what} (${code})`, neverConnected)
}

/** What went wrong in `send`. */
export function failureText(error: unknown): string {
  return asFailure(error).message
}

export function unavailable(detail: string): Unavailable {
  return { kind: 'unavailable', detail }
}

/** Decimal rupees of the generic contract, read as paisa. */
export const moneyAmount = moneyInput.transform((text) => parseMoney(text) ?? 0)

/** A text of the processor's that is stored and shown. */
export const plainText = z.string().regex(/^[^\p{Cc}]{1,200}$/u)

function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null
  const pause = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isNaN(pause) ? null : Math.min(Math.max(pause, 0), MAX_RETRY_AFTER_MS)
}

/** `answered STATUS: text`, bounded, in one line. */
export function describeAnswer(status: number, message: string): string {
  const text = message.toWellFormed().replace(/\p{Cc}+/gu, ' ')
  return `answered ${status}${text === '' ? '' : `: ${text}`}`.slice(0, MAX_DETAIL_LENGTH)
}
