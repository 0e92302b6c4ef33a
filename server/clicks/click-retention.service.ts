import { DAY_MS } from '../../shared/durations.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { readWatermark } from '../platform/database/watermarks.ts'
import { firstIdAt, NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { deleteClicks } from './clicks.store.ts'

/** Some milliseconds of the one writer on SQLite: clicks that come meanwhile wait for it. */
const ROWS_AT_ONCE = 2000
/** Clicks with smaller ids may be gone. Written before they go, so that a missing click has a reason. */
const PRUNED = 'clicks pruned'

/** Removes clicks past CLICK_RETENTION_DAYS, in small transactions. Returns how many. */
export async function enforceClickRetention({ database, clock, config }: Platform): Promise<number> {
  if (config.CLICK_RETENTION_DAYS === 0) return 0
  const before = firstIdAt(clock.now() - config.CLICK_RETENTION_DAYS * DAY_MS)
  await database.transaction((tx) => notePruned(tx, before))
  let pruned = 0
  for (;;) {
    const some = await database.transaction((tx) => deleteClicks(tx, before, ROWS_AT_ONCE))
    pruned += some
    if (some < ROWS_AT_ONCE) return pruned
  }
}

/** Clicks with smaller ids may be gone (CLICK_RETENTION_DAYS): a sale keeps what mattered of its click on its receipt. */
export async function clicksPrunedBefore(db: Queries): Promise<string> {
  return (await readWatermark(db, PRUNED)) ?? NIL_ID
}

/** Moves the mark to `before`; never back. */
export async function notePruned(tx: Tx, before: string): Promise<void> {
  await tx
    .insertInto('watermarks')
    .values({ name: PRUNED, value: before })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet({ value: before }).where('watermarks.value', '<', before),
    )
    .execute()
}
