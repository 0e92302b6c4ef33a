/** How long one task may block the event loop. */
const MAX_BLOCK_MS = 10

/**
 * Returns a function to call between the items of a task: it yields to the event loop after `MAX_BLOCK_MS` of work, or in any case with
 * `always`. Do not await it inside a transaction.
 */
export function createLoopYield(): (always?: boolean) => Promise<void> | undefined {
  let since = performance.now()
  return (always = false) => {
    if (!always && performance.now() - since < MAX_BLOCK_MS) return
    return new Promise((resolve) =>
      setImmediate(() => {
        since = performance.now()
        resolve()
      }),
    )
  }
}
