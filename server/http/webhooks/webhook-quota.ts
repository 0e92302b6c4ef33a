import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { Refusal } from '../../platform/api/refusal.ts'
import type { Config } from '../../platform/config.ts'

const WINDOW_S = 60

/** Counted quota that can be refunded. */
export interface Reservation {
  /** Only first deliveries count, so a redelivery is refunded. */
  refund(): Promise<void>
}

/**
 * The events and bytes that one store may send a minute (`WEBHOOK_EVENTS_PER_MINUTE`, `WEBHOOK_BYTES_PER_MINUTE`; 0 means no
 * limit). Each process counts for itself.
 */
export class WebhookQuota {
  readonly #events: RateLimiterMemory | null
  readonly #bytes: RateLimiterMemory | null

  constructor(config: Pick<Config, 'WEBHOOK_EVENTS_PER_MINUTE' | 'WEBHOOK_BYTES_PER_MINUTE'>) {
    this.#events = limiter(config.WEBHOOK_EVENTS_PER_MINUTE)
    this.#bytes = limiter(config.WEBHOOK_BYTES_PER_MINUTE)
  }

  /** Counts an event of a store. Throws `rate_limited`, in which case nothing is counted. */
  async reserve(storeId: string, bytes: number): Promise<Reservation> {
    await take(this.#events, storeId, 1)
    try {
      await take(this.#bytes, storeId, bytes)
    } catch (error) {
      await this.#events?.reward(storeId, 1)
      throw error
    }
    return {
      refund: async () => {
        await Promise.all([this.#events?.reward(storeId, 1), this.#bytes?.reward(storeId, bytes)])
      },
    }
  }
}

function limiter(points: number): RateLimiterMemory | null {
  return points === 0 ? null : new RateLimiterMemory({ points, duration: WINDOW_S })
}

async function take(from: RateLimiterMemory | null, storeId: string, points: number): Promise<void> {
  try {
    await from?.consume(storeId, points)
  } catch (refused) {
    if (!(refused instanceof RateLimiterRes)) throw refused
    // A refused event does not count.
    await from?.reward(storeId, points)
    throw new Refusal('rate_limited', 'This store exceeds its webhook quota per minute. Try again later.', {
      retryAfter: Math.max(1, Math.ceil(refused.msBeforeNext / 1000)),
    })
  }
}
