import { TRPCClientError, type TRPCLink } from '@trpc/client'
import { observable } from '@trpc/server/observable'
import type { AppRouter } from './api.ts'
import { problemIn, responseOf, retryAfter } from './problems.ts'

export interface CallLimits {
  /** How often a call is repeated. */
  retries: number
  /** Of one attempt, ms. */
  timeout: number
}

/** A longer `Retry-After` is left to the caller, seconds: the limits of the service are those of a minute. */
const LONGEST_WAIT_S = 60
const FIRST_WAIT_MS = 500

/** Ends each attempt after `timeout`, and repeats calls that change nothing or have an idempotency key after 429 and 503. */
export function limitedCalls({ retries, timeout }: CallLimits): TRPCLink<AppRouter> {
  return () =>
    ({ op, next }) =>
      observable((observer) => {
        let stop = () => {}
        const end = (reason: unknown) => {
          stop()
          observer.error(TRPCClientError.from(reason instanceof Error ? reason : new Error(String(reason))))
        }
        const abort = () => end(op.signal?.reason)
        const attempt = (number: number) => {
          const canceled = new AbortController()
          const late = setTimeout(() => end(new Error(`No answer after ${timeout} ms.`)), timeout)
          const sent = next({ ...op, signal: canceled.signal }).subscribe({
            next: (value) => observer.next(value),
            complete() {
              clearTimeout(late)
              observer.complete()
            },
            error(error) {
              clearTimeout(late)
              const isSafe = op.type === 'query' || op.context.idempotencyKey !== undefined
              const wait = isSafe && number < retries ? waitAfter(error, number) : null
              if (wait === null) return observer.error(error)
              const again = setTimeout(() => attempt(number + 1), wait)
              stop = () => clearTimeout(again)
            },
          })
          stop = () => {
            clearTimeout(late)
            sent.unsubscribe()
            canceled.abort()
          }
        }
        op.signal?.addEventListener('abort', abort)
        if (op.signal?.aborted) abort()
        else attempt(0)
        return () => {
          op.signal?.removeEventListener('abort', abort)
          stop()
        }
      })
}

/** How long to wait after the failure of an attempt (the first is 0), ms; `null` for one that a repetition does not help. */
function waitAfter(error: unknown, number: number): number | null {
  const status = problemIn(error)?.status ?? responseOf(error)?.status
  if (status !== 429 && status !== 503) return null
  const seconds = retryAfter(error)
  if (seconds !== null && seconds > LONGEST_WAIT_S) return null
  const wait = seconds === null ? FIRST_WAIT_MS * 2 ** number : seconds * 1000
  // Callers that were refused together do not come back together.
  return wait * (1 + Math.random() / 4)
}
