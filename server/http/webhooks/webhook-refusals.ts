import type { Logger } from '../../platform/log.ts'

interface WebhookRefusal {
  requestId: string
  route: string
  /** The shop domain that the sender claims, if any. */
  domain: string | null
  reason: string
}

const WINDOW_MS = 60_000
/** Domain and reason pairs counted apart in a window; further ones are counted together. */
const MAX_KEYS = 100
const MAX_DOMAIN = 100

/**
 * Logs refused webhooks, at most one line a domain and reason at once, and one with the count of further ones when the minute
 * ends. A flood of them cannot fill the disk.
 */
export class WebhookRefusals {
  readonly #log: Logger
  readonly #windowMs: number
  /** Refusals after the first, by domain and reason. */
  readonly #counts = new Map<string, { domain: string | null; reason: string; refused: number }>()
  #timer: NodeJS.Timeout | null = null

  /** `windowMs` is for tests. */
  constructor(log: Logger, windowMs: number = WINDOW_MS) {
    this.#log = log
    this.#windowMs = windowMs
  }

  note({ requestId, route, domain: claimed, reason }: WebhookRefusal): void {
    const domain = claimed === null ? null : loggable(claimed)
    const key = `${domain}\n${reason}`
    const known = this.#counts.get(key)
    if (known) {
      known.refused += 1
      return
    }
    if (this.#counts.size >= MAX_KEYS) {
      const others = this.#counts.get('') ?? { domain: 'others', reason: 'various', refused: 0 }
      others.refused += 1
      this.#counts.set('', others)
      return
    }
    this.#counts.set(key, { domain, reason, refused: 0 })
    this.#timer ??= setTimeout(() => this.flush(), this.#windowMs).unref()
    this.#log.warn({ requestId, route, domain, reason }, 'webhook refused')
  }

  /** Ends the window and logs its counts. */
  flush(): void {
    clearTimeout(this.#timer ?? undefined)
    this.#timer = null
    for (const { domain, reason, refused } of this.#counts.values()) {
      if (refused > 0) this.#log.warn({ domain, reason, refused }, 'more webhooks refused in the last minute')
    }
    this.#counts.clear()
  }
}

/** The domain is unsigned input: keep visible ASCII, shorten. */
function loggable(domain: string): string {
  return domain.slice(0, MAX_DOMAIN).replace(/[^\x21-\x7e]/g, '?')
}
