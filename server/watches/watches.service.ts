import { forEachIsolated } from '../platform/database/batches.ts'
import type { Platform } from '../platform/platform.ts'
import { watchConversions, watchSales, watchVisits } from './conversion-watch.service.ts'
import { watchCycles } from './cycle-watch.service.ts'
import { watchIdentities } from './identity-watch.service.ts'
import { watchRefusals, watchStores } from './store-watch.service.ts'

const WATCHES = [
  { name: 'visits', run: watchVisits },
  { name: 'sales', run: watchSales },
  { name: 'conversions', run: watchConversions },
  { name: 'identities', run: watchIdentities },
  { name: 'cycles', run: watchCycles },
  { name: 'stores', run: watchStores },
  { name: 'refusals', run: watchRefusals },
]

/**
 * Raises the flags that need more than one request or event. Each watch continues at its watermark, in its own transactions, so several
 * workers may run this. A failed watch does not stop the others; its error is thrown at the end. Returns how many watches have more
 * to do.
 */
export async function watchMarketplace(platform: Platform): Promise<number> {
  const more = await forEachIsolated(platform, WATCHES, async (watch) =>
    (await watch.run(platform)) ? watch.name : null,
  )
  return more.length
}
