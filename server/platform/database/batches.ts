import type { Platform } from '../platform.ts'

interface RunOptions<Item, Outcome> {
  /** Called before each batch. */
  progress?: ((at: number, all: number) => void) | undefined
  /** What a run makes of an item that failed; `null`: nothing. Without it the first error is thrown at the end. */
  onFailure?: ((item: Item, error: unknown) => Promise<Outcome | null>) | undefined
}

/**
 * Runs `work` on batches of `size` items, each done for all of its items or for none. Repeats a batch that fails item by item, so that only
 * the items that cannot be done are left: each is logged. An unavailable database ends the run at once. Returns the outcomes in the order
 * of the batches.
 */
export async function processInBatches<Item, Outcome>(
  platform: Platform,
  items: readonly Item[],
  size: number,
  work: (batch: readonly Item[]) => Promise<Outcome[]>,
  { progress, onFailure }: RunOptions<Item, Outcome> = {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const errors: unknown[] = []
  const run = async (batch: readonly Item[]): Promise<void> => {
    try {
      outcomes.push(...(await work(batch)))
    } catch (error) {
      if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
      if (batch.length > 1) {
        platform.log.warn({ err: error, items: batch.length }, 'a batch failed; its items run one by one')
        for (const item of batch) await run([item])
        return
      }
      const [item] = batch as readonly [Item]
      platform.log.error({ err: error, item }, 'one item of a run failed; the run goes on')
      const outcome = onFailure ? await onFailure(item, error) : null
      if (outcome !== null) outcomes.push(outcome)
      if (!onFailure) errors.push(error)
    }
  }
  for (let start = 0; start < items.length; start += size) {
    progress?.(start + 1, items.length)
    await run(items.slice(start, start + size))
  }
  if (errors.length > 0) throw errors[0]
  return outcomes
}

/** The same for one item after the other. Returns the outcomes without `null`. */
export function forEachIsolated<Item, Outcome>(
  platform: Platform,
  items: readonly Item[],
  work: (item: Item) => Promise<Outcome | null>,
  options?: RunOptions<Item, Outcome>,
): Promise<Outcome[]> {
  const alone = async ([item]: readonly Item[]) => {
    const outcome = await work(item as Item)
    return outcome === null ? [] : [outcome]
  }
  return processInBatches(platform, items, 1, alone, options)
}

/** The items as they come, in batches of `size` and a last one of what is left. */
export async function* inBatches<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let batch: T[] = []
  for await (const item of items) {
    batch.push(item)
    if (batch.length < size) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
