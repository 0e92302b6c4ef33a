import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Config } from '../platform/config.ts'
import { Refusal } from '../platform/refusal.ts'

const WINDOW_S = 60

/** A reservation that counts unless it is taken back. */
export interface Reservation {
  /** For a redelivery: only first deliveries count. */
  takeBack(): Promise<void>
}

/**
 * How many events, and bytes of them, one store may report a minute (`WEBHOOK_EVENTS_PER_MINUTE`, `WEBHOOK_BYTES_PER_MINUTE`; 0 is
 * without limit). Counted per process, in its memory: with several processes behind a load balancer a store has as many quotas.
 */
export class WebhookQuota {
  readonly #events: RateLimiterMemory | null
  readonly #bytes: RateLimiterMemory | null

  constructor(config: Pick<Config, 'WEBHOOK_EVENTS_PER_MINUTE' | 'WEBHOOK_BYTES_PER_MINUTE'>) {
    this.#events = limiter(config.WEBHOOK_EVENTS_PER_MINUTE)
    this.#bytes = limiter(config.WEBHOOK_BYTES_PER_MINUTE)
  }

  /** Counts an event of a store. Refuses with `rate_limited`, which counts nothing. */
  async reserve(storeId: string, bytes: number): Promise<Reservation> {
    await take(this.#events, storeId, 1)
    try {
      await take(this.#bytes, storeId, bytes)
    } catch (error) {
      await this.#events?.reward(storeId, 1)
      throw error
    }
    return {
      takeBack: async () => {
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
    // What was refused must not count against what comes next.
    await from?.reward(storeId, points)
    throw new Refusal('rate_limited', 'This store sends more than its quota for a minute. Try again later.', {
      retryAfter: Math.max(1, Math.ceil(refused.msBeforeNext / 1000)),
    })
  }
}
