/** How long one piece of work may keep the event loop busy before others get a turn. */
const LONGEST_MS = 10

/** Lets the event loop turn if the work has kept it busy for more than `LONGEST_MS`, or in any case with `always`. */
export type LoopYield = (always?: boolean) => Promise<void> | undefined

/** Makes a function to call between the items of one piece of work. Do not await it inside a transaction. */
export function createLoopYield(): LoopYield {
  let since = performance.now()
  return (always = false) => {
    if (!always && performance.now() - since < LONGEST_MS) return
    return new Promise((resolve) =>
      setImmediate(() => {
        since = performance.now()
        resolve()
      }),
    )
  }
}
