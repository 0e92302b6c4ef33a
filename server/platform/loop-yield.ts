/** How long one task may block the event loop. */
const MAX_BLOCK_MS = 10

/** Yields to the event loop after `MAX_BLOCK_MS` of work, or in any case with `always`. */
type LoopYield = (always?: boolean) => Promise<void> | undefined

/** Returns a function to call between the items of a task. Do not await it inside a transaction. */
export function createLoopYield(): LoopYield {
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
