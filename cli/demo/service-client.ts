import { Agent, request } from 'undici'
import type { z } from 'zod'
import { problem } from '../../shared/schemas/common.ts'
import { DemoStopped } from './demo-stopped.ts'

/** Longer than any request takes, short enough for a demo. */
const ANSWER_WITHIN_MS = 10_000

/** No answer came: whether the request took effect is unknown, as it is to any client whose server dies. */
export class NoAnswer extends Error {
  constructor(action: string, cause: unknown) {
    super(`no answer to ${action}`, { cause })
    this.name = 'NoAnswer'
  }
}

/** The service answered with a problem; `code` is one of the service's error codes where it gave one. */
export class Refused extends DemoStopped {
  readonly status: number
  readonly code: string
  constructor(action: string, status: number, code: string, detail: string) {
    super(`${action} was answered ${status} ${code}: ${detail}`)
    this.name = 'Refused'
    this.status = status
    this.code = code
  }
}

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

export interface Call {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT'
  /** Whole address, or a path of the service. */
  url: string
  headers?: Record<string, string>
  body?: Buffer | string
}

/** Speaks to the service as any client outside would: HTTP, nothing else. */
export class ServiceClient {
  readonly #agent = new Agent({ headersTimeout: ANSWER_WITHIN_MS, bodyTimeout: ANSWER_WITHIN_MS })
  readonly #address: () => string

  /** `address` is asked on each call, for a server that is not up yet. */
  constructor(address: () => string) {
    this.#address = address
  }

  /** One request, redirects not followed. Throws `NoAnswer`; a 503 counts as one, since it says "later". */
  async send(call: Call): Promise<Answer> {
    const action = `${call.method} ${call.url}`
    const url = new URL(call.url, this.#address())
    try {
      const { method, headers, body } = call
      const answer = await request(url, { dispatcher: this.#agent, method, headers, body })
      const text = await answer.body.text()
      if (answer.statusCode === 503) throw new Error('the service is unavailable')
      return { status: answer.statusCode, headers: answer.headers, text }
    } catch (error) {
      throw new NoAnswer(action, error)
    }
  }

  /** A JSON call; the answer must be 2xx and fit the wire schema. Throws `NoAnswer` and `Refused`. */
  async call<Schema extends z.ZodType>(
    method: Call['method'],
    path: string,
    schema: Schema,
    options: { token?: string; body?: unknown } = {},
  ): Promise<z.output<Schema>> {
    const answer = await this.send({
      method,
      url: path,
      headers: {
        ...(options.token ? { authorization: `Bearer ${options.token}` } : {}),
        ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
    })
    if (answer.status >= 300) throw refusedBy(`${method} ${path}`, answer)
    return schema.parse(JSON.parse(answer.text))
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }
}

/** What an answer of 3xx to 5xx says, as an error. */
export function refusedBy(action: string, answer: Answer): Refused {
  try {
    const { code, detail } = problem.partial().parse(JSON.parse(answer.text))
    return new Refused(action, answer.status, code ?? 'without_code', detail ?? '')
  } catch {
    return new Refused(action, answer.status, 'without_code', answer.text.slice(0, 200))
  }
}
