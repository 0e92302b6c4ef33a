import { Refusal } from './api/refusal.ts'

/** How long a request waits for one read, ms. */
const READ_TIMEOUT_MS = 1800

/** Resolves as `read` does; refuses with `unavailable` after `timeoutMs`. The read itself continues. */
export async function withTimeout<T>(read: Promise<T>, timeoutMs = READ_TIMEOUT_MS): Promise<T> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () =>
      reject(
        new Refusal('unavailable', 'The service cannot look this up right now. Try again shortly.', {
          internalDetail: 'the database did not answer in time',
          retryAfter: 1,
        }),
      ),
    timeoutMs,
  )
  try {
    return await Promise.race([read, tooLate])
  } finally {
    clearTimeout(timer)
  }
}
