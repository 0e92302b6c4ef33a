import { LRUCache } from 'lru-cache'
import { DAY_MS } from '../../shared/durations.ts'
import { plainShopDomain, shopDomain } from '../../shared/schemas/stores.ts'
import type { Platform } from '../platform/platform.ts'
import type { RefusalReason } from './store.entity.ts'
import {
  addUnclaimed,
  noteRefused,
  type RefusalsRow,
  type UnclaimedDomainRow,
  unclaimedDomains,
} from './stores.store.ts'

/** Each process writes a domain's refusals at most once in this time, unless a valid delivery came between. */
const RECORD_EVERY_MS = 60_000
/** Refusals of this time share one transaction. */
const COLLECT_MS = 1000
const MAX_DOMAINS = 1000
/** Unclaimed domains that a process collects between two writes. */
const MAX_COLLECTED = 100
/** Unclaimed domains that are kept by count, and as many by time. */
const MAX_UNCLAIMED = 100
/** How long an unclaimed domain is kept after its last delivery, ms. */
const UNCLAIMED_KEPT_MS = 30 * DAY_MS

/**
 * Counts deliveries that fail verification: in the name of connected shops, so that their merchants see it, and for domains that no
 * merchant claims. Anyone can cause a refusal, so nothing of the delivery is kept, memory and rows are bounded, and a flood costs one
 * small transaction a second at most.
 */
export class RefusedDeliveries {
  readonly #platform: Platform
  readonly #written = new LRUCache<string, true>({ max: MAX_DOMAINS, ttl: RECORD_EVERY_MS })
  readonly #pending = new Map<string, RefusalsRow>()
  readonly #unclaimed = new Map<string, UnclaimedDomainRow>()
  #timer: NodeJS.Timeout | null = null

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** `domain` must be that of a claim in use. */
  note(domain: string, reason: RefusalReason): void {
    const known = this.#pending.get(domain)
    if (!known && this.#pending.size >= MAX_DOMAINS) return
    const now = this.#platform.clock.now()
    const { first_at, times } = known && known.times > 0 ? known : { first_at: now, times: 0 }
    this.#pending.set(domain, { domain, first_at, last_at: now, reason, times: times + 1 })
    this.#schedule()
  }

  /** A delivery in this shop's name was valid: refusals after it are counted from the first, and written promptly. */
  accepted(domain: string): void {
    this.#written.delete(domain)
    const known = this.#pending.get(domain)
    if (known) known.times = 0
  }

  /** `domain` is what the delivery names, and no claim in use has it. */
  noteUnclaimed(domain: string): void {
    const known = this.#unclaimed.get(domain)
    if (!known && (this.#unclaimed.size >= MAX_COLLECTED || !shopDomain.safeParse(domain).success)) return
    const now = this.#platform.clock.now()
    const { first_at, deliveries } = known ?? { first_at: now, deliveries: 0 }
    this.#unclaimed.set(domain, {
      shop_domain: domain,
      first_at,
      last_at: now,
      deliveries: deliveries + 1,
    })
    this.#schedule()
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => void this.flush(), COLLECT_MS).unref()
  }

  /** Writes what is due, or `all` that is collected. Does not throw: a lost note only delays what people see. */
  async flush({ all = false }: { all?: boolean } = {}): Promise<void> {
    clearTimeout(this.#timer ?? undefined)
    this.#timer = null
    const { database, clock, log } = this.#platform
    const refused = [...this.#pending.values()].filter(({ domain }) => all || !this.#written.has(domain))
    for (const { domain } of refused) {
      this.#written.set(domain, true)
      this.#pending.delete(domain)
    }
    const unclaimed = [...this.#unclaimed.values()]
    this.#unclaimed.clear()
    if (this.#pending.size > 0) this.#schedule()
    if (refused.length + unclaimed.length === 0) return
    try {
      await database.transaction(async (tx) => {
        // In one order, so that two processes cannot wait for each other.
        await noteRefused(tx, refused.sort(byText(({ domain }) => domain)))
        if (unclaimed.length === 0) return
        await addUnclaimed(tx, unclaimed.sort(byText(({ shop_domain }) => shop_domain)), {
          most: MAX_UNCLAIMED,
          keptSince: clock.now() - UNCLAIMED_KEPT_MS,
        })
      })
    } catch (error) {
      log.warn({ err: error }, 'refused webhooks could not be noted')
    }
  }
}

function byText<Row>(textOf: (row: Row) => string): (one: Row, other: Row) => number {
  return (one, other) => (textOf(one) < textOf(other) ? -1 : 1)
}

/** Domains that deliveries name and no merchant claims, most deliveries first; one domain if given. */
export function countedUnclaimed({ database }: Platform, domain?: string): Promise<UnclaimedDomainRow[]> {
  return unclaimedDomains(database.reader, domain === undefined ? undefined : plainShopDomain(domain))
}
