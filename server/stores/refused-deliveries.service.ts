import { LRUCache } from 'lru-cache'
import type { Platform } from '../platform/platform.ts'
import type { RefusalReason } from './store.entity.ts'
import { noteRefused } from './stores.store.ts'

/** Each process writes a domain's refusals at most once in this time. */
const RECORD_EVERY_MS = 60_000
/** Refusals of this time share one transaction. */
const COLLECT_MS = 1000
const MAX_DOMAINS = 1000

/**
 * Notes when deliveries in the name of connected shops fail verification, so that their merchants see it. Anyone can cause a
 * refusal, so nothing of the delivery is kept, and a flood costs one small write a second at most.
 */
export class RefusedDeliveries {
  readonly #platform: Platform
  readonly #written = new LRUCache<string, true>({ max: MAX_DOMAINS, ttl: RECORD_EVERY_MS })
  readonly #pending = new Map<string, RefusalReason>()
  #timer: NodeJS.Timeout | null = null

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** `domain` must be that of a claim in use. */
  note(domain: string, reason: RefusalReason): void {
    if (this.#written.has(domain) || this.#pending.size >= MAX_DOMAINS) return
    this.#pending.set(domain, reason)
    this.#timer ??= setTimeout(() => void this.flush(), COLLECT_MS).unref()
  }

  /** Writes what is collected. Does not throw: a lost note only delays what a merchant sees. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer ?? undefined)
    this.#timer = null
    const { database, clock, log } = this.#platform
    const domains = Map.groupBy(this.#pending.keys(), (domain) => this.#pending.get(domain))
    for (const domain of this.#pending.keys()) this.#written.set(domain, true)
    this.#pending.clear()
    try {
      for (const [reason, named] of domains) {
        if (reason === undefined) continue
        await database.transaction((tx) => noteRefused(tx, named, { at: clock.now(), reason }))
      }
    } catch (error) {
      log.warn({ err: error }, 'refused webhooks could not be noted')
    }
  }
}
