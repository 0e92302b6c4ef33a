import type { Platform } from '../platform.ts'

type Progress = (at: number, all: number) => void

/** What a run makes of an item that failed; `null`: nothing. */
type OnFailure<Item, Outcome> = (item: Item, error: unknown) => Promise<Outcome | null>

interface RunOptions<Item, Outcome> {
  progress?: Progress | undefined
  /** Without it the first error is thrown at the end. */
  onFailure?: OnFailure<Item, Outcome> | undefined
}

/**
 * Runs `work` on one item after the other. Logs an item that fails and goes on. An unavailable database ends the run at once. Returns the
 * outcomes without `null`. Calls `progress` before each item.
 */
export async function forEachIsolated<Item, Outcome>(
  platform: Platform,
  items: readonly Item[],
  work: (item: Item) => Promise<Outcome | null>,
  { progress = () => {}, onFailure }: RunOptions<Item, Outcome> = {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const errors: unknown[] = []
  for (const [at, item] of items.entries()) {
    progress(at + 1, items.length)
    try {
      const outcome = await work(item)
      if (outcome !== null) outcomes.push(outcome)
    } catch (error) {
      if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
      platform.log.error({ err: error, item }, 'one item of a run failed; the run goes on')
      const outcome = onFailure ? await onFailure(item, error) : null
      if (outcome !== null) outcomes.push(outcome)
      if (!onFailure) errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
  return outcomes
}

/** Work on a batch of items that is done for all of them or for none. */
type BatchWork<Item, Outcome> = (batch: readonly Item[]) => Promise<Outcome[]>

/**
 * Runs `work` on batches of `size` items. Repeats a batch that fails item by item, so that only the items that cannot be done are left:
 * each is logged. An unavailable database ends the run at once. Returns the outcomes in the order of the batches. Calls `progress` before
 * each batch.
 */
export async function processInBatches<Item, Outcome>(
  platform: Platform,
  items: readonly Item[],
  size: number,
  work: BatchWork<Item, Outcome>,
  { progress = () => {}, onFailure }: RunOptions<Item, Outcome> = {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const errors: unknown[] = []
  for (let start = 0; start < items.length; start += size) {
    progress(start + 1, items.length)
    try {
      outcomes.push(...(await processBatch(platform, items.slice(start, start + size), work, onFailure)))
    } catch (error) {
      if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
  return outcomes
}

async function processBatch<Item, Outcome>(
  platform: Platform,
  batch: readonly Item[],
  work: BatchWork<Item, Outcome>,
  onFailure: OnFailure<Item, Outcome> | undefined,
): Promise<Outcome[]> {
  if (batch.length > 1) {
    try {
      return await work(batch)
    } catch (error) {
      if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
      platform.log.warn({ err: error, items: batch.length }, 'a batch failed; its items run one by one')
    }
  }
  const alone = async (item: Item, error: unknown) => {
    const outcome = await onFailure?.(item, error)
    return outcome ? [outcome] : null
  }
  return (
    await forEachIsolated(platform, batch, (item) => work([item]), {
      ...(onFailure && { onFailure: alone }),
    })
  ).flat()
}
