import { request } from 'undici'
import { jsonOrNull } from '../../shared/json.ts'
import { Failure, wrongUsage } from '../failures.ts'

export interface Answer {
  status: number
  body: string
  location: string | null
}

const TIMEOUT_MS = 10_000

/** Calls the running service from outside, as stores, processors and visitors do. Follows no redirect. */
export class ServiceCaller {
  readonly base: string

  constructor(base: string) {
    if (!URL.canParse(base) || !/^https?:\/\//.test(base)) {
      throw wrongUsage(`"${base}" is no http or https address.`)
    }
    this.base = base.replace(/\/+$/, '')
  }

  /** Whether it runs on this machine, by its address. */
  get isLocal(): boolean {
    const { hostname } = new URL(this.base)
    return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
  }

  /** NODE_ENV of the service; `null` where it does not say. */
  async environment(): Promise<string | null> {
    const state = jsonOrNull((await this.call('/readyz')).body) as { environment?: unknown } | null
    return typeof state?.environment === 'string' ? state.environment : null
  }

  /** Posts JSON, or gets what is there without a body. */
  async call(
    path: string,
    headers: Record<string, string> = {},
    body: Buffer | null = null,
  ): Promise<Answer> {
    try {
      const answer = await request(`${this.base}${path}`, {
        method: body === null ? 'GET' : 'POST',
        headers: body === null ? headers : { 'content-type': 'application/json', ...headers },
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const { location } = answer.headers
      return {
        status: answer.statusCode,
        body: await answer.body.text(),
        location: typeof location === 'string' ? location : null,
      }
    } catch (error) {
      const { code, name } = error as NodeJS.ErrnoException
      throw new Failure(
        `No service answers at ${this.base} (${code ?? name}). Start one with "affiliate serve", or name it with --url.`,
        { code: 'unavailable' },
      )
    }
  }
}
