export interface BackoffPolicy {
  /** Longest wait before the first retry, ms. */
  firstMs: number
  /** By how much the longest wait grows with each further retry; at least 1. */
  factor: number
  /** The longest wait of all, ms. */
  maxMs: number
}

/** Whatever a policy says, the first retry comes within this time: most outages are over by then. */
export const FIRST_RETRY_WITHIN_MS = 2000

/**
 * How long to wait (whole ms, at least 1) before retry number `attempt` (1 = the first retry).
 *
 * Full jitter: evenly between nothing and `min(maxMs, firstMs × factor^(attempt − 1))`, so that callers which failed
 * together do not come back together. The first retry's bound is at most `FIRST_RETRY_WITHIN_MS`.
 * `jitter` is the caller's random number in [0, 1); the greater it is, the longer the wait.
 */
export function retryDelay(attempt: number, policy: BackoffPolicy, jitter: number): number {
  const { firstMs, factor, maxMs } = policy
  if (!Number.isInteger(attempt) || attempt < 1) throw new Error(`no retry number ${attempt}`)
  if (!(jitter >= 0 && jitter < 1)) throw new Error(`jitter outside [0, 1): ${jitter}`)
  if (!(firstMs >= 1 && factor >= 1 && maxMs >= firstMs)) throw new Error('a backoff policy that cannot be')
  const grown = Math.min(maxMs, firstMs * factor ** (attempt - 1))
  const bound = Math.floor(attempt === 1 ? Math.min(grown, FIRST_RETRY_WITHIN_MS) : grown)
  return 1 + Math.floor(jitter * bound)
}
