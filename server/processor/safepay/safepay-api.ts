import { z } from 'zod'
import { type OutgoingCalls, openOutgoingCalls } from '../../platform/network/outgoing-calls.ts'
import { describeAnswer, exchange, type HttpAnswer } from '../http-exchange.ts'

export interface SafepayOptions {
  /** Ends in `/raastwire`. A function is called for each request. */
  url: string | (() => string)
  aggregatorId: string
  secretKey: string
  /** For the whole call, from connecting to the last byte of the answer, ms. */
  timeoutMs: number
}

type Query = Record<string, string | undefined>

/** Requests under one aggregator of Safepay Raast. Failures of the network are thrown; see `asFailure`. */
export class SafepayApi {
  readonly #options: SafepayOptions
  readonly #calls: OutgoingCalls

  constructor(options: SafepayOptions) {
    this.#options = options
    this.#calls = openOutgoingCalls({ connect: { timeout: options.timeoutMs }, connections: 32 })
  }

  get(path: string, query: Query = {}): Promise<HttpAnswer> {
    return this.#send('GET', path, query)
  }

  post(path: string, body: object): Promise<HttpAnswer> {
    return this.#send('POST', path, {}, body)
  }

  put(path: string, body?: object): Promise<HttpAnswer> {
    return this.#send('PUT', path, {}, body)
  }

  close(): Promise<void> {
    return this.#calls.close()
  }

  #send(method: 'GET' | 'POST' | 'PUT', path: string, query: Query, body?: object): Promise<HttpAnswer> {
    const { aggregatorId, secretKey, timeoutMs, url: base } = this.#options
    const root = typeof base === 'function' ? base() : base
    const url = new URL(`${root}/v1/aggregators/${encodeURIComponent(aggregatorId)}/${path}`)
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, value)
    const headers = { 'x-sfpy-aggregator-secret-key': secretKey }
    return exchange(this.#calls, { method, url, headers, body, timeoutMs })
  }
}

const errorText = z.object({ code: z.string().optional(), message: z.string().optional() })
/** Errors come in an envelope or flat. */
const errorBody = z.union([z.object({ error: errorText }).transform(({ error }) => error), errorText])

/** `answered STATUS: code message`, from either shape of an error. */
export function describeError({ status, body }: HttpAnswer): string {
  const { code, message } = errorBody.safeParse(body).data ?? {}
  return describeAnswer(status, [code, message].filter(Boolean).join(' '))
}
