import type { Platform } from './platform.ts'

/**
 * Works through `items` one after the other, each on its own: one that fails is logged and keeps none of the others
 * from being done. The first error is thrown at the end; a database that is gone ends the run at once. Answers what
 * came out, `null` left out. `progress` hears of each before it is begun.
 */
export async function eachOnItsOwn<Item, Outcome>(
  platform: Platform,
  items: readonly Item[],
  work: (item: Item) => Promise<Outcome | null>,
  progress: (at: number, all: number) => void = () => {},
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
      platform.log.error({ err: error, item }, 'one of a run failed; the run goes on')
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
  return outcomes
}
