import type { Logger } from '../platform/log.ts'

export interface WebhookRefusal {
  requestId: string
  route: string
  /** As the sender claims; `null` for the processor, or when it names none. */
  domain: string | null
  reason: string
}

const WINDOW_MS = 60_000
/** Lines for different senders and reasons in a window; what is more is counted together. */
const MOST_KEYS = 100
const MAX_DOMAIN = 100

/**
 * Logs refused webhooks without letting a flood of them fill the disk: per domain and reason the first of a minute at once, the others as
 * one line with their number when the minute ends. Counted per process.
 */
export class WebhookRefusals {
  readonly #log: Logger
  readonly #windowMs: number
  /** What was refused after the first, by domain and reason. */
  readonly #counts = new Map<string, { domain: string | null; reason: string; refused: number }>()
  #timer: NodeJS.Timeout | null = null

  /** `windowMs`: other than a minute, for tests. */
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
    if (this.#counts.size >= MOST_KEYS) {
      const others = this.#counts.get('') ?? { domain: 'others', reason: 'various', refused: 0 }
      others.refused += 1
      this.#counts.set('', others)
      return
    }
    this.#counts.set(key, { domain, reason, refused: 0 })
    this.#timer ??= setTimeout(() => this.flush(), this.#windowMs).unref()
    this.#log.warn({ requestId, route, domain, reason }, 'webhook refused')
  }

  /** Ends the window: logs what was counted. */
  flush(): void {
    clearTimeout(this.#timer ?? undefined)
    this.#timer = null
    for (const { domain, reason, refused } of this.#counts.values()) {
      if (refused > 0) this.#log.warn({ domain, reason, refused }, 'more webhooks refused in the last minute')
    }
    this.#counts.clear()
  }
}

/** Unsigned text: visible ASCII only, cut. */
function loggable(domain: string): string {
  return domain.slice(0, MAX_DOMAIN).replace(/[^\x21-\x7e]/g, '?')
}
