import { Agent, request } from 'undici'
import { Failure } from '../failures.ts'

export interface Answer {
  status: number
  body: string
  location: string | null
}

const TIMEOUT_MS = 10_000
/** What follows a link without a user agent counts as a bot. */
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** Calls the running service from outside, as stores, processors and visitors do. Follows no redirect. */
export class ServiceCaller {
  readonly base: string
  readonly #agent = new Agent({ connect: { timeout: TIMEOUT_MS } })

  constructor(base: string) {
    if (!URL.canParse(base) || !/^https?:\/\//.test(base)) {
      throw new Failure(`"${base}" is no http or https address.`, { code: 'validation_failed' })
    }
    this.base = base.replace(/\/+$/, '')
  }

  post(path: string, headers: Record<string, string>, body: Buffer): Promise<Answer> {
    return this.#call('POST', path, { 'content-type': 'application/json', ...headers }, body)
  }

  /** Whether it runs on this machine, by its address. */
  get isLocal(): boolean {
    const { hostname } = new URL(this.base)
    return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
  }

  /** NODE_ENV of the service; `null` where it does not say. */
  async environment(): Promise<string | null> {
    const { body } = await this.#call('GET', '/readyz', {}, null)
    try {
      const { environment } = JSON.parse(body) as { environment?: unknown }
      return typeof environment === 'string' ? environment : null
    } catch {
      return null
    }
  }

  /** Follows a link like a browser. */
  visit(path: string): Promise<Answer> {
    return this.#call('GET', path, { 'user-agent': BROWSER }, null)
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }

  async #call(
    method: 'GET' | 'POST',
    path: string,
    headers: Record<string, string>,
    body: Buffer | null,
  ): Promise<Answer> {
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS)
      const answer = await request(`${this.base}${path}`, {
        dispatcher: this.#agent,
        method,
        headers,
        body,
        signal,
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
