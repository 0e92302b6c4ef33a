import { forEachIsolated } from '../platform/database/batches.ts'
import type { Platform } from '../platform/platform.ts'
import { watchConversions } from './conversion-watch.service.ts'
import { watchCycles } from './cycle-watch.service.ts'
import { watchIdentities } from './identity-watch.service.ts'
import { watchSales } from './sale-watch.service.ts'

const WATCHES = [
  { name: 'sales', run: watchSales },
  { name: 'conversions', run: watchConversions },
  { name: 'identities', run: watchIdentities },
  { name: 'cycles', run: watchCycles },
]

/**
 * Raises the flags that no single request or event can see: each watch takes up where it was left, in transactions of its own, so
 * any number of workers may do this at once. One that fails keeps none of the others from looking; its error is thrown at the end.
 * Answers how many have more to look at.
 */
export async function watchMarketplace(platform: Platform): Promise<number> {
  const more = await forEachIsolated(platform, WATCHES, async (watch) =>
    (await watch.run(platform)) ? watch.name : null,
  )
  return more.length
}
