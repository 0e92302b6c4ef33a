import { LRUCache } from 'lru-cache'
import type { ListedPlace } from './offer-catalogue.store.ts'

const MOST = 10_000
/** Characters, of all that are kept: some twenty megabytes with what is made of them. */
const MOST_TEXT = 6_000_000
/** What an offer takes besides its long texts. */
const LEAST_TEXT = 400
/** Whatever is changed past the service is seen after this time too. */
const LIFETIME_MS = 60_000

interface Kept<Shown> {
  updatedAt: number
  merchantName: string
  until: number
  shown: Shown
}

/** Of an offer, what can be long. */
interface Texts {
  description: string | null
  product_ids: readonly string[] | null
}

/**
 * Offers as lists show them, for as long as the database says that they are the same: every change moves `updated_at`, and the name
 * of the merchant is compared too. Bounded in number and size.
 */
export class KeptOffers<Shown extends Texts> {
  /** Whether all offers of the last list were kept. */
  hadAll = false
  readonly #kept = new LRUCache<string, Kept<Shown>>({ max: MOST, maxSize: MOST_TEXT })
  readonly #now: () => number

  constructor(now = () => performance.now()) {
    this.#now = now
  }

  /** What is kept of an offer, if it is still as it was. */
  get({ id, updated_at, merchant_name }: ListedPlace): Shown | undefined {
    const kept = this.#kept.get(id)
    if (!kept || kept.updatedAt !== updated_at || kept.merchantName !== merchant_name) return undefined
    return kept.until > this.#now() ? kept.shown : undefined
  }

  /** Keeps an offer as it was at this place: the same object every time, which nobody may change. */
  keep({ id, updated_at, merchant_name }: ListedPlace, shown: Shown): Shown {
    const kept = {
      updatedAt: updated_at,
      merchantName: merchant_name,
      until: this.#now() + LIFETIME_MS,
      shown: Object.freeze(shown),
    }
    this.#kept.set(id, kept, { size: sizeOf(shown) })
    return shown
  }
}

const PRODUCT_ID = 20

function sizeOf({ description, product_ids }: Texts): number {
  return LEAST_TEXT + (description?.length ?? 0) + (product_ids?.length ?? 0) * PRODUCT_ID
}
