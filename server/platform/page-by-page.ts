import { eachOnItsOwn } from './each-on-its-own.ts'
import type { Platform } from './platform.ts'

/** Work on a page of items, which is done for all of them or for none. */
type PageWork<Item, Outcome> = (page: readonly Item[]) => Promise<Outcome[]>

/**
 * Works through `items` in pages of `size`. A page that fails is done one by one, so that exactly those that cannot be done
 * are left: each is logged, and the first error is thrown at the end. A database that is gone ends the run at once. Answers
 * what came out, in the order of the pages. `progress` hears of the first of each page before that is begun.
 */
export async function pageByPage<Item, Outcome>(
  platform: Platform,
  items: readonly Item[],
  size: number,
  work: PageWork<Item, Outcome>,
  progress: (at: number, all: number) => void = () => {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const errors: unknown[] = []
  for (let start = 0; start < items.length; start += size) {
    progress(start + 1, items.length)
    try {
      outcomes.push(...(await doPage(platform, items.slice(start, start + size), work)))
    } catch (error) {
      if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
  return outcomes
}

async function doPage<Item, Outcome>(
  platform: Platform,
  page: readonly Item[],
  work: PageWork<Item, Outcome>,
): Promise<Outcome[]> {
  if (page.length > 1) {
    try {
      return await work(page)
    } catch (error) {
      if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
      platform.log.warn({ err: error, items: page.length }, 'a page of a run failed; it is done one by one')
    }
  }
  return (await eachOnItsOwn(platform, page, (item) => work([item]))).flat()
}
