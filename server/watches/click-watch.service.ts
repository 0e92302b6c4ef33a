import { LRUCache } from 'lru-cache'
import { raiseFlags } from '../flags/flags.service.ts'
import { linkRecords } from '../links/links.service.ts'
import type { Tx } from '../platform/database/database.ts'
import { dataCenterCheck } from '../platform/network/data-centers.ts'
import { RateLimiter } from '../platform/network/rate-limiter.ts'
import type { Platform } from '../platform/platform.ts'
import { dayOf } from '../stores/store-activity.service.ts'
import { countVisit, isRobotic, type VisitWindow, visitsWithin } from './patterns.rule.ts'
import { tallyLinks } from './watches.store.ts'

/** At most about 40 megabytes. An evicted address starts again at zero, which takes as many other addresses. */
const MAX_COUNTERS = 50_000
const FLUSH_AFTER_MS = 1000
const MAX_PENDING_LINKS = 1000
const MAX_ADDRESSES = 10
/** An address that has made this part of the visits that are flagged is counted over all processes. */
const SHARED_PART = 8
/** Only visits of this many days ago or more are expected to have sold something by now. */
const SETTLING_DAYS = 3

interface Visit {
  /** The hash of an address. */
  visitor: string
  linkId: string
  /** Epoch ms. */
  at: number
  /** Looked up for a busy one only, and never kept. */
  address: string
}

/** Visits from one address. */
interface FromAddress {
  visits: number
  dataCenter: boolean
}

interface Share extends Pick<Visit, 'linkId' | 'visitor'>, FromAddress {}

interface Counter {
  window: VisitWindow
  shared: boolean
  /** Known once the visitor is busy. */
  dataCenter?: boolean
}

/**
 * Flags links that one address visits too often, if there is a second sign: see `isRobotic`. Visits are counted by link and hash of the
 * address in the memory of this process; those of a busy address also over all processes, where the database is PostgreSQL. Flags are
 * written after a second, in their own transaction.
 */
export class ClickWatch {
  readonly #platform: Platform
  /** By link id and visitor. Created at first use: it reserves memory for all. */
  #counters: LRUCache<string, Counter> | undefined
  /** PostgreSQL: the visits of all processes, by link, visitor and span of time. */
  readonly #all: RateLimiter | null
  /** Visits to add to them at the next flush. */
  #shares = new Map<string, Share>()
  /** By link id: visits by hash of the address, for the next flush. */
  #pending = new Map<string, Map<string, FromAddress>>()
  readonly #isDataCenter: (address: string) => boolean
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> = Promise.resolve()

  constructor(platform: Platform) {
    this.#platform = platform
    const { config, database } = platform
    this.#isDataCenter = dataCenterCheck(config.DATACENTER_NETWORKS)
    const limit = { points: config.FLAG_CLICKS, seconds: config.FLAG_CLICKS_SECONDS }
    const shared = { shared: { name: 'clicks', database } }
    this.#all = database.dialect === 'postgresql' ? new RateLimiter(limit, shared) : null
  }

  /** Counts one visit, in a few microseconds. Never throws. */
  observe({ visitor, linkId, at, address }: Visit): void {
    const { FLAG_CLICKS: limit, FLAG_CLICKS_SECONDS: seconds } = this.#platform.config
    if (limit === 0) return
    const key = linkId + visitor
    this.#counters ??= new LRUCache({ max: MAX_COUNTERS })
    const known = this.#counters.get(key)
    const window = countVisit(known?.window, at, seconds * 1000)
    const counter: Counter = known ?? { window, shared: false }
    if (known) known.window = window
    else this.#counters.set(key, counter)
    const visits = visitsWithin(window, at, seconds * 1000)
    const wasShared = counter.shared
    counter.shared = visits >= limit / SHARED_PART
    if (!counter.shared) return
    counter.dataCenter ??= this.#isDataCenter(address)
    const { dataCenter } = counter
    if (visits >= limit) this.#addPending(linkId, visitor, { visits, dataCenter })
    else {
      const span = Math.floor(at / (seconds * 1000))
      this.#share(`${key} ${span}`, { linkId, visitor, visits: wasShared ? 1 : visits, dataCenter })
    }
  }

  /** Resolves when all pending flags are on disk. */
  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#flushing = this.#flushing.then(() => this.#write())
    return this.#flushing
  }

  #addPending(linkId: string, visitor: string, visits: FromAddress): void {
    const known = this.#pending.get(linkId)
    if (!known && this.#pending.size >= MAX_PENDING_LINKS) return
    const addresses = known ?? new Map<string, FromAddress>()
    if (addresses.has(visitor) || addresses.size < MAX_ADDRESSES) addresses.set(visitor, visits)
    this.#pending.set(linkId, addresses)
    this.#flushSoon()
  }

  #share(key: string, share: Share): void {
    const known = this.#shares.get(key)
    if (!this.#all || (!known && this.#shares.size >= MAX_PENDING_LINKS)) return
    if (known) known.visits += share.visits
    else this.#shares.set(key, share)
    this.#flushSoon()
  }

  #flushSoon(): void {
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_AFTER_MS).unref()
  }

  /** A failure only delays a flag: further visits raise it again. */
  async #write(): Promise<void> {
    const { database, log } = this.#platform
    try {
      await this.#addToAll()
      const pending = this.#pending
      this.#pending = new Map()
      if (pending.size > 0) await database.transaction((tx) => this.#flag(tx, pending))
    } catch (error) {
      log.warn({ err: error }, 'cannot count or flag clicks')
    }
  }

  async #addToAll(): Promise<void> {
    const shares = this.#shares
    this.#shares = new Map()
    for (const [key, { linkId, visitor, visits, dataCenter }] of shares) {
      const all = await this.#all?.consume(key, visits)
      if (all?.remaining === 0) this.#addPending(linkId, visitor, { visits: all.limit, dataCenter })
    }
  }

  async #flag(tx: Tx, pending: ReadonlyMap<string, ReadonlyMap<string, FromAddress>>): Promise<void> {
    const { clock, config } = this.#platform
    const { FLAG_CLICKS: limit, FLAG_CLICKS_SECONDS: seconds, FLAG_CLICKS_UNSOLD: unsold } = config
    const links = await linkRecords(tx, [...pending.keys()])
    const today = dayOf(clock.now())
    const settledDays = { firstDay: today - config.FLAG_CONVERSION_DAYS, lastDay: today - SETTLING_DAYS }
    const tallies = unsold === 0 ? new Map() : await tallyLinks(tx, [...links.keys()], settledDays)
    const flags = [...links.values()].flatMap(({ id, slug, creator_id, merchant_id, offer_id }) => {
      const settled = tallies.get(id)
      const robotic = [...(pending.get(id) ?? [])].filter(([, { dataCenter }]) =>
        isRobotic({ dataCenter, settled }, unsold),
      )
      if (robotic.length === 0) return []
      const most = Math.max(...robotic.map(([, { visits }]) => visits))
      const dataCenter = robotic.some(([, one]) => one.dataCenter)
      const sign = dataCenter
        ? 'The address belongs to a data center.'
        : `None of ${settled?.visits} visits of the days before led to a sale.`
      return {
        kind: 'click_velocity' as const,
        subjectType: 'affiliate_link' as const,
        subjectId: id,
        summary: `A link was visited ${most} times from one address within ${seconds} seconds. ${sign}`,
        evidence: {
          affiliate_link_slug: slug,
          creator_id,
          merchant_id,
          offer_id,
          limit,
          within_seconds: seconds,
          data_center: dataCenter,
          ...(settled && { visits_before: settled.visits, sales: settled.sales }),
          /** The hash's key lasts a day and is not stored. */
          visits_by_address_hash: Object.fromEntries(robotic.map(([hash, { visits }]) => [hash, visits])),
        },
      }
    })
    await raiseFlags(this.#platform, tx, flags)
  }
}

export { addDailyVisits } from './watches.store.ts'
