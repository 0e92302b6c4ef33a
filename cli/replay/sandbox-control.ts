import { request } from 'undici'
import { z } from 'zod'
import type { App } from '../../server/app.ts'
import type { SandboxSwitches } from '../../server/processor/sandbox/switches.ts'
import { Failure } from '../failures.ts'

const TIMEOUT_MS = 10_000
/** The sandbox sends its own events again after this time, even if the command is killed. */
const HOLD_MS = 60_000

const state = z.object({
  events: z.array(
    z.object({
      id: z.string(),
      object_id: z.string(),
      body: z.object({ type: z.string(), data: z.record(z.string(), z.unknown()) }),
    }),
  ),
})

export type SandboxEvent = z.infer<typeof state>['events'][number]

/** The sandbox processor of the running service, as its settings and `sandbox.json` name it. */
export class SandboxControl {
  readonly #url: string
  readonly #apiKey: string
  readonly #now: () => number

  constructor(url: string, apiKey: string, now: () => number) {
    this.#url = url
    this.#apiKey = apiKey
    this.#now = now
  }

  /** Keeps the sandbox from sending its own events for a while, so that the ones that are replayed come first. */
  async hold(): Promise<void> {
    await this.#set({ hold_events_until: this.#now() + HOLD_MS })
  }

  async release(): Promise<void> {
    await this.#set({ hold_events_until: 0 })
  }

  async failNextPayouts(count: number): Promise<void> {
    await this.#set({ fail_next_payouts: count })
  }

  /** What the sandbox says, or is about to say, about each of its invoices and payouts, by their ids. */
  async events(): Promise<Map<string, SandboxEvent>> {
    const { events } = state.parse(await this.#call('GET', '/_sandbox/state'))
    return new Map(events.map((event) => [event.object_id, event]))
  }

  async #set(change: Partial<SandboxSwitches>): Promise<void> {
    await this.#call('PUT', '/_sandbox/switches', change)
  }

  async #call(method: 'GET' | 'PUT', path: string, body?: unknown): Promise<unknown> {
    const answer = await request(`${this.#url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#apiKey}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((error: NodeJS.ErrnoException) => {
      throw new Failure(
        `The sandbox processor does not answer at ${this.#url} (${error.code ?? error.name}).`,
        {
          code: 'unavailable',
        },
      )
    })
    const document = await answer.body.json()
    if (answer.statusCode === 200) return document
    throw new Failure(`The sandbox processor at ${this.#url} refused ${path}: HTTP ${answer.statusCode}.`)
  }
}

/** `null` with another processor, or where no sandbox runs. */
export function sandboxOf({ sandbox, platform: { config, clock } }: App): SandboxControl | null {
  const url = config.PROCESSOR_URL ?? sandbox?.url
  if (config.PROCESSOR !== 'sandbox' || !sandbox || !url) return null
  return new SandboxControl(url, config.PROCESSOR_API_KEY ?? sandbox.api_key, () => clock.now())
}
