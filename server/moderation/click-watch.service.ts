import { LRUCache } from 'lru-cache'
import { linkRecords } from '../links/links.service.ts'
import type { Platform } from '../platform/platform.ts'
import { countVisit, type VisitWindow, visitsWithin } from './click-velocity.rule.ts'
import { raiseFlags } from './flags.service.ts'

/** By estimate some forty megabytes at most. An address that is pushed out begins anew, which takes as many other addresses. */
const ROOM = 50_000
const FLUSH_AFTER_MS = 1000
const MAX_LINKS_WAITING = 1000
const ADDRESSES_SHOWN = 10

export interface Visit {
  /** Who came: the hash of an address. */
  visitor: string
  linkId: string
  /** Epoch ms. */
  at: number
}

export interface ClickWatch {
  /** Counts one visit, in a few microseconds; nothing waits for it, and it never throws. */
  observe(visit: Visit): void
  /** Writes the flags that wait; resolves when they are on disk. */
  flush(): Promise<void>
}

/**
 * Counts the visits of each link by address, in the memory of this process, and flags links that one address visits too often.
 * It never sees an address, only the hash that stands for it. The flag is written a second later, in a transaction of its own.
 */
export function createClickWatch(platform: Platform): ClickWatch {
  return new Watch(platform)
}

class Watch implements ClickWatch {
  readonly #platform: Platform
  /** By link id and visitor. */
  readonly #counters = new LRUCache<string, { window: VisitWindow }>({
    maxSize: ROOM,
    sizeCalculation: () => 1,
  })
  /** Visits by hash of the address, by link: what the next flush writes. */
  #waiting = new Map<string, Map<string, number>>()
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> = Promise.resolve()

  constructor(platform: Platform) {
    this.#platform = platform
  }

  observe({ visitor, linkId, at }: Visit): void {
    const { FLAG_CLICKS: limit, FLAG_CLICKS_SECONDS: seconds } = this.#platform.config
    if (limit === 0) return
    const key = linkId + visitor
    const known = this.#counters.get(key)
    const window = countVisit(known?.window, at, seconds * 1000)
    if (known) known.window = window
    else this.#counters.set(key, { window })
    const visits = visitsWithin(window, at, seconds * 1000)
    if (visits >= limit) this.#note(linkId, visitor, visits)
  }

  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#flushing = this.#flushing.then(() => this.#write())
    return this.#flushing
  }

  #note(linkId: string, visitor: string, visits: number): void {
    const known = this.#waiting.get(linkId)
    if (!known && this.#waiting.size >= MAX_LINKS_WAITING) return
    const addresses = known ?? new Map<string, number>()
    if (addresses.has(visitor) || addresses.size < ADDRESSES_SHOWN) addresses.set(visitor, visits)
    this.#waiting.set(linkId, addresses)
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_AFTER_MS).unref()
  }

  async #write(): Promise<void> {
    const waiting = this.#waiting
    if (waiting.size === 0) return
    this.#waiting = new Map()
    try {
      await this.#platform.database.transaction(async (tx) => {
        const links = await linkRecords(tx, [...waiting.keys()])
        const flags = [...links.values()].map((link) =>
          flagOf(this.#platform, link, waiting.get(link.id) ?? new Map()),
        )
        await raiseFlags(this.#platform, tx, flags)
      })
    } catch (error) {
      // Whoever goes on clicking is noted again.
      this.#platform.log.warn({ err: error, links: waiting.size }, 'flags about clicks could not be written')
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
      /** By a hash that tells addresses apart for a day, and leads back to none. */
      visits_by_address_hash: Object.fromEntries(addresses),
    },
  } as const
}
