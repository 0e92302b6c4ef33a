import { Refusal } from '../../platform/api/refusal.ts'
import type { Config } from '../../platform/config.ts'
import { RateLimiter } from '../../platform/network/rate-limiter.ts'

/** The events and bytes that one store may send a minute. Each process counts for itself. */
export class WebhookQuota {
  readonly #events: RateLimiter
  readonly #bytes: RateLimiter

  constructor(config: Pick<Config, 'WEBHOOK_EVENTS_PER_MINUTE' | 'WEBHOOK_BYTES_PER_MINUTE'>) {
    this.#events = new RateLimiter({ points: config.WEBHOOK_EVENTS_PER_MINUTE, seconds: 60 })
    this.#bytes = new RateLimiter({ points: config.WEBHOOK_BYTES_PER_MINUTE, seconds: 60 })
  }

  /**
   * Counts an event of a store. Throws `rate_limited`, in which case nothing is counted. Only first deliveries count: `refund` is for
   * the others.
   */
  async reserve(storeId: string, bytes: number) {
    const events = await this.#events.consume(storeId)
    const ofBytes = events?.exceeded ? null : await this.#bytes.consume(storeId, bytes)
    const refund = async () => {
      await this.#events.reward(storeId)
      if (!events?.exceeded) await this.#bytes.reward(storeId, bytes)
    }
    const exceeded = [events, ofBytes].find((standing) => standing?.exceeded)
    if (!exceeded) return { refund }
    await refund()
    throw new Refusal('rate_limited', 'This store exceeds its webhook quota per minute. Try again later.', {
      retryAfter: exceeded.resetsIn,
    })
  }
}
