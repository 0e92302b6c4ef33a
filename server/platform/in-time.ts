import { Refusal } from './refusal.ts'

/** How long somebody who needs an answer now waits for one read, in ms: a database that has stalled is answered for. */
export const READ_PATIENCE_MS = 2000

/** The read's answer; refuses with `unavailable` when it takes longer than `patienceMs`. The read itself goes on. */
export async function inTime<T>(read: Promise<T>, patienceMs = READ_PATIENCE_MS): Promise<T> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () =>
      reject(
        new Refusal('unavailable', 'The service cannot look this up right now. Try again shortly.', {
          internalDetail: 'the database did not answer in time',
          retryAfter: 1,
        }),
      ),
    patienceMs,
  )
  try {
    return await Promise.race([read, tooLate])
  } finally {
    clearTimeout(timer)
  }
}
