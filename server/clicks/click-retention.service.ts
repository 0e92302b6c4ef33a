import { DAY_MS } from '../../shared/durations.ts'
import type { Queries } from '../platform/database/database.ts'
import { firstIdAt, NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { monthsFrom } from './click-months.rule.ts'
import {
  addPart,
  ClicksHeldUp,
  clickParts,
  deleteClicks,
  deleteOthers,
  dropPart,
  isAmongOthers,
  notePruned,
  readPruned,
} from './click-retention.store.ts'

/** Months that stand ready beyond the present one: a worker may be away that long. */
const MONTHS_AHEAD = 2
/** Some milliseconds of the one writer: clicks that come meanwhile wait for it. */
const ROWS_AT_ONCE = 2000

/** Makes ready for the clicks to come, and takes away those past CLICK_RETENTION_DAYS. Answers how much it took away. */
export async function enforceClickRetention(platform: Platform): Promise<number> {
  if (platform.database.dialect === 'postgresql') await addMonths(platform)
  const { database, clock, config } = platform
  if (config.CLICK_RETENTION_DAYS === 0) return 0
  const before = firstIdAt(clock.now() - config.CLICK_RETENTION_DAYS * DAY_MS)
  return database.dialect === 'sqlite'
    ? pruneRows(platform, before, deleteClicks)
    : pruneMonths(platform, before)
}

/** Clicks with smaller ids may be gone (CLICK_RETENTION_DAYS): a sale keeps what mattered of its click on its receipt. */
export function clicksPrunedBefore(db: Queries): Promise<string> {
  return readPruned(db)
}

async function addMonths(platform: Platform): Promise<void> {
  const { database, clock, log } = platform
  const parts = await clickParts(database.reader)
  const goesWithout = 'a month of clicks gets no table of its own'
  for (const month of monthsFrom(clock.now(), MONTHS_AHEAD)) {
    const [from, to] = [firstIdAt(month.start), firstIdAt(month.end)]
    // Each month for itself: an earlier one than the last may be missing.
    if (parts.some((part) => part.from < to && from < part.to)) continue
    try {
      // PostgreSQL would refuse to make it a part, after a check during which every click waits.
      if (await isAmongOthers(database.reader, from, to)) log.warn({ month: month.table }, goesWithout)
      else await database.transaction((tx) => addPart(tx, month))
    } catch (error) {
      // Without it the month's clicks go where all others are: nothing is lost but the ease of taking them away.
      log.warn({ err: error, month: month.table }, goesWithout)
      // The next month's would hold up the clicks as long again.
      if (error instanceof ClicksHeldUp) return
    }
  }
}

async function pruneRows(
  { database }: Platform,
  before: string,
  deleteSome: typeof deleteClicks,
): Promise<number> {
  await database.transaction((tx) => notePruned(tx, before))
  let pruned = 0
  for (;;) {
    const some = await database.transaction((tx) => deleteSome(tx, before, ROWS_AT_ONCE))
    pruned += some
    if (some < ROWS_AT_ONCE) return pruned
  }
}

async function pruneMonths(platform: Platform, before: string): Promise<number> {
  const { database, log } = platform
  // First, since a month may have to wait until its table is free.
  const others = (await isAmongOthers(database.reader, NIL_ID, before))
    ? await pruneRows(platform, before, deleteOthers)
    : 0
  const old = (await clickParts(database.reader)).filter(({ to }) => to <= before)
  for (const [dropped, { table, to }] of old.entries()) {
    await database.transaction((tx) => notePruned(tx, to))
    try {
      await database.transaction((tx) => dropPart(tx, table))
    } catch (error) {
      if (!(error instanceof ClicksHeldUp)) throw error
      // Thrown on, it would be tried again in a second, and hold up the clicks each time.
      log.warn({ err: error, table }, 'a month of old clicks stays for now')
      return others + dropped
    }
  }
  return others + old.length
}
