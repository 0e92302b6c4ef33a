import type { Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import { RateLimiter } from '../platform/rate-limiter.ts'
import { Refusal } from '../platform/refusal.ts'
import { checkQuota, holdAccount } from '../users/quota.service.ts'
import { countStoresInUse } from './stores.store.ts'

export const MAX_STORES = 10
/** Answers `secret_taken` to one account within an hour: each one confirms a guess at another store's secret. */
export const MAX_SECRETS_TAKEN = 5

/** Refuses one store too many with `quota_exceeded`, also one that comes back after its removal. */
export function checkStoreQuota(tx: Tx, merchantId: string): Promise<void> {
  return checkQuota(tx, merchantId, {
    most: MAX_STORES,
    count: () => countStoresInUse(tx, merchantId),
    detail: `At most ${MAX_STORES} stores per account. Remove one before you connect another.`,
  })
}

/**
 * To be called before a secret is compared with those of other stores. Refuses with `rate_limited` an account that has
 * been answered `secret_taken` too often, whether or not this secret is taken.
 */
export async function refuseSecretGuesses(platform: Platform, tx: Tx, merchantId: string): Promise<void> {
  await holdAccount(tx, merchantId)
  const standing = await limiterOf(platform).peek(merchantId)
  if (!standing?.exceeded) return
  const minutes = Math.ceil(standing.resetsIn / 60)
  throw new Refusal(
    'rate_limited',
    `Too many webhook secrets that belong to other stores. Try again in ${minutes === 1 ? '1 minute' : `${minutes} minutes`}.`,
    { retryAfter: standing.resetsIn },
  )
}

/** The refusal `secret_taken`, counted. */
export async function secretTaken(platform: Platform, merchantId: string): Promise<Refusal> {
  await limiterOf(platform).consume(merchantId)
  return new Refusal(
    'secret_taken',
    'This webhook secret belongs to another store. Each store needs its own.',
  )
}

const ofPlatform = new WeakMap<Platform, RateLimiter>()

function limiterOf(platform: Platform): RateLimiter {
  const limiter = ofPlatform.get(platform) ?? new RateLimiter({ points: MAX_SECRETS_TAKEN, seconds: 3600 })
  ofPlatform.set(platform, limiter)
  return limiter
}
