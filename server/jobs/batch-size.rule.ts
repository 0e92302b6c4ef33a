/**
 * How much processor time a batch should take, ms: on SQLite it holds the event loop meanwhile, and a request beside it waits. Its syncs of
 * the disk come on top: they take as long for a small batch.
 */
export const BATCH_MS = 20
/** A batch has a fixed cost: smaller ones would do little else. */
export const LEAST_BATCH = 50
export const MOST_BATCH = 1000
export const FIRST_BATCH = 100

/** The size changes by no more at a time, so that one slow batch does not decide it. */
const MOST_SHRINK = 0.5
const MOST_GROWTH = 1.5

/** What a batch took: how many events were claimed, and how much processor time, ms. */
interface BatchTaken {
  claimed: number
  ms: number
}

/** The size of the batch after one of `size` events at most. A batch that was not full shows no more than that it was not too large. */
export function nextBatchSize(size: number, { claimed, ms }: BatchTaken): number {
  const factor = Math.min(Math.max(BATCH_MS / ms, MOST_SHRINK), MOST_GROWTH)
  if (factor >= 1 && claimed < size) return size
  const next = Math.round((factor < 1 ? claimed : size) * factor)
  return Math.min(Math.max(next, LEAST_BATCH), MOST_BATCH)
}
