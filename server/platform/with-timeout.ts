import { unavailable } from './api/refusal.ts'

/** How long a request waits for one read, ms. */
const READ_TIMEOUT_MS = 1800

/** Resolves as `read` does; refuses with `unavailable` after `timeoutMs`. The read itself continues. */
export function withTimeout<T>(read: Promise<T>, timeoutMs = READ_TIMEOUT_MS): Promise<T> {
  return within(timeoutMs, read, () =>
    unavailable('The service cannot look this up right now.', 'the database did not answer in time'),
  )
}

/** Resolves as `work` does; rejects with `tooLate()` after so many ms. The work itself continues. */
export async function within<T>(ms: number, work: Promise<T>, tooLate: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(tooLate()), ms)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
