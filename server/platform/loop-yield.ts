/** How long one piece of work may keep the event loop busy before others get a turn. */
const LONGEST_MS = 10

/**
 * Makes a function that lets the event loop turn when this piece of work has kept it busy for more than `LONGEST_MS`. Call it between
 * items; do not await it inside a transaction.
 */
export function createLoopYield(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < LONGEST_MS) return
    return new Promise((resolve) =>
      setImmediate(() => {
        since = performance.now()
        resolve()
      }),
    )
  }
}
