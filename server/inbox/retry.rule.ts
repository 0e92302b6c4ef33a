import { type BackoffPolicy, retryDelay } from '../platform/queue/backoff.rule.ts'

/** Eleven retries within half an hour, a quarter of an hour on average: an event can overtake the answer to our own call. */
export const MAX_ATTEMPTS = 12
const POLICY: BackoffPolicy = { firstMs: 1000, factor: 2, maxMs: 600_000 }
/** The longest wait for the next attempt. */
export const LONGEST_DELAY_MS = POLICY.maxMs

export type RetryDecision = { kind: 'retry'; delayMs: number } | { kind: 'set_aside' }

/** What to do after attempt number `attempt` (from 1) of an event failed. `jitter` is in [0, 1). */
export function decideRetry(attempt: number, jitter: number): RetryDecision {
  if (attempt >= MAX_ATTEMPTS) return { kind: 'set_aside' }
  return { kind: 'retry', delayMs: retryDelay(attempt, POLICY, jitter) }
}
