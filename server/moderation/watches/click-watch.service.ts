import { LRUCache } from 'lru-cache'
import { linkRecords } from '../../links/links.service.ts'
import type { Platform } from '../../platform/platform.ts'
import { raiseFlags } from '../flags.service.ts'
import { countVisit, type VisitWindow, visitsWithin } from './patterns.rule.ts'

/** At most about 40 megabytes. An evicted address starts again at zero, which takes as many other addresses. */
const MAX_COUNTERS = 50_000
const FLUSH_AFTER_MS = 1000
const MAX_PENDING_LINKS = 1000
const MAX_ADDRESSES = 10

export interface Visit {
  /** The hash of an address. */
  visitor: string
  linkId: string
  /** Epoch ms. */
  at: number
}

export interface ClickWatch {
  /** Counts one visit, in a few microseconds. Never throws. */
  observe(visit: Visit): void
  /** Resolves when all pending flags are on disk. */
  flush(): Promise<void>
}

/**
 * Flags links that one address visits too often. Visits are counted by link and hash of the address in the memory of this process. Flags
 * are written after a second, in their own transaction.
 */
export function createClickWatch(platform: Platform): ClickWatch {
  return new Watch(platform)
}

class Watch implements ClickWatch {
  readonly #platform: Platform
  /** By link id and visitor. Created at first use: it reserves memory for all. */
  #counters: LRUCache<string, { window: VisitWindow }> | undefined
  /** By link id: visits by hash of the address, for the next flush. */
  #pending = new Map<string, Map<string, number>>()
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> = Promise.resolve()

  constructor(platform: Platform) {
    this.#platform = platform
  }

  observe({ visitor, linkId, at }: Visit): void {
    const { FLAG_CLICKS: limit, FLAG_CLICKS_SECONDS: seconds } = this.#platform.config
    if (limit === 0) return
    const key = linkId + visitor
    this.#counters ??= new LRUCache({ max: MAX_COUNTERS })
    const known = this.#counters.get(key)
    const window = countVisit(known?.window, at, seconds * 1000)
    if (known) known.window = window
    else this.#counters.set(key, { window })
    const visits = visitsWithin(window, at, seconds * 1000)
    if (visits >= limit) this.#addPending(linkId, visitor, visits)
  }

  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#flushing = this.#flushing.then(() => this.#write())
    return this.#flushing
  }

  #addPending(linkId: string, visitor: string, visits: number): void {
    const known = this.#pending.get(linkId)
    if (!known && this.#pending.size >= MAX_PENDING_LINKS) return
    const addresses = known ?? new Map<string, number>()
    if (addresses.has(visitor) || addresses.size < MAX_ADDRESSES) addresses.set(visitor, visits)
    this.#pending.set(linkId, addresses)
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_AFTER_MS).unref()
  }

  async #write(): Promise<void> {
    const pending = this.#pending
    if (pending.size === 0) return
    this.#pending = new Map()
    try {
      await this.#platform.database.transaction(async (tx) => {
        const links = await linkRecords(tx, [...pending.keys()])
        const flags = [...links.values()].map((link) =>
          flagOf(this.#platform, link, pending.get(link.id) ?? new Map()),
        )
        await raiseFlags(this.#platform, tx, flags)
      })
    } catch (error) {
      // Further visits raise the flag again.
      this.#platform.log.warn({ err: error, links: pending.size }, 'cannot write flags about clicks')
    }
  }
}

function flagOf(
  platform: Platform,
  link: { id: string; slug: string; creatorId: string; merchantId: string; offerId: string },
  addresses: ReadonlyMap<string, number>,
) {
  const { FLAG_CLICKS: limit, FLAG_CLICKS_SECONDS: seconds } = platform.config
  return {
    kind: 'click_velocity',
    subjectType: 'affiliate_link',
    subjectId: link.id,
    summary: `A link was visited ${Math.max(...addresses.values())} times from one address within ${seconds} seconds.`,
    evidence: {
      affiliate_link_slug: link.slug,
      creator_id: link.creatorId,
      merchant_id: link.merchantId,
      offer_id: link.offerId,
      limit,
      within_seconds: seconds,
      /** The hash's key lasts a day and is not stored. */
      visits_by_address_hash: Object.fromEntries(addresses),
    },
  } as const
}
