const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The waits before the retries, ms. */
export const RETRY_DELAYS_MS = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
]
/** Jitter lengthens a wait by up to this part of it. */
const JITTER = 0.1
const MAX_RETRY_AFTER_MS = 24 * HOUR
/** The longest wait for an attempt. */
export const LONGEST_DELAY_MS = 24 * HOUR * (1 + JITTER)
/** An endpoint that has failed for so long is disabled, ms. */
const DISABLE_AFTER_MS = 5 * 24 * HOUR

export type AttemptDecision =
  | { kind: 'delivered' }
  | { kind: 'retry'; dueAt: number }
  /** No attempts are left. */
  | { kind: 'failed' }
  /** The receiver wants nothing more: the endpoint is disabled. */
  | { kind: 'gone' }

export interface AttemptFacts {
  /** The number of the attempt, from 1. */
  attempt: number
  /** The HTTP status; `null` without a response. */
  status: number | null
  /** The `Retry-After` header. */
  retryAfter: string | null
  /** Epoch ms. */
  now: number
  /** In [0, 1). */
  jitter: number
}

/** What follows from an attempt: 2xx is success, 410 disables the endpoint, anything else is tried again while attempts are left. */
export function decideAttempt({ attempt, status, retryAfter, now, jitter }: AttemptFacts): AttemptDecision {
  if (status !== null && status >= 200 && status < 300) return { kind: 'delivered' }
  if (status === 410) return { kind: 'gone' }
  const delay = RETRY_DELAYS_MS[attempt - 1]
  if (delay === undefined) return { kind: 'failed' }
  const wait = Math.max(delay + Math.floor(delay * JITTER * jitter), retryAfterMs(retryAfter, now))
  return { kind: 'retry', dueAt: now + wait }
}

/** The wait that a `Retry-After` header asks for, seconds or a date, at most a day, ms; 0 without a valid one. */
function retryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0
  const wait = /^\d{1,9}$/.test(header) ? Number(header) * SECOND : Date.parse(header) - now
  return Number.isNaN(wait) ? 0 : Math.min(Math.max(wait, 0), MAX_RETRY_AFTER_MS)
}

/** Whether an endpoint whose every attempt since `failingSince` (epoch ms) has failed is to be disabled. */
export function hasFailedForLong(failingSince: number | null, now: number): boolean {
  return failingSince !== null && now - failingSince >= DISABLE_AFTER_MS
}
