import { setTimeout as pause } from 'node:timers/promises'

/**
 * What the slowest wait of any test usually takes is two seconds; a hundred times that, and more. A wait that ends by this has failed
 * on any machine.
 */
export const GIVE_UP_MS = 300_000
const POLL_MS = 10

/** Asks until `done` accepts the answer, or until it is truthy, and returns it. Throws with the last answer when that never happens. */
export function eventually<T>(
  ask: () => T | Promise<T>,
): Promise<Exclude<T, null | undefined | false | 0 | ''>>
export function eventually<T>(ask: () => T | Promise<T>, done: (value: T) => boolean): Promise<T>
export async function eventually<T>(
  ask: () => T | Promise<T>,
  done: (value: T) => boolean = Boolean,
): Promise<T> {
  const end = performance.now() + GIVE_UP_MS
  for (;;) {
    const value = await ask()
    if (done(value)) return value
    if (performance.now() > end) throw new Error(`timed out; the last answer: ${JSON.stringify(value)}`)
    await pause(POLL_MS)
  }
}
