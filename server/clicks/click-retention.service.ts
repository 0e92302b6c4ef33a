import type { Queries } from '../platform/database.ts'
import { firstIdAt } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { monthsFrom } from './click-months.rule.ts'
import {
  addPart,
  clickParts,
  deleteClicks,
  dropPart,
  notePruned,
  readPruned,
} from './click-retention.store.ts'
import { readWatermark } from './clicks.store.ts'

/** Months that stand ready beyond the present one: a worker may be away that long. */
const MONTHS_AHEAD = 2
/** Some milliseconds of the one writer: clicks that come meanwhile wait for it. */
const ROWS_AT_ONCE = 2000
const DAY_MS = 86_400_000

/** Makes ready for the clicks to come, and takes away those past CLICK_RETENTION_DAYS. Answers how much it took away. */
export async function tendClicks(platform: Platform): Promise<number> {
  if (platform.database.dialect === 'postgresql') await addMonths(platform)
  const { database, clock, config } = platform
  if (config.CLICK_RETENTION_DAYS === 0) return 0
  const old = firstIdAt(clock.now() - config.CLICK_RETENTION_DAYS * DAY_MS)
  const counted = await readWatermark(database.reader)
  // Never before they are counted.
  const before = old < counted ? old : counted
  return database.dialect === 'sqlite' ? pruneRows(platform, before) : pruneMonths(platform, before)
}

/** Clicks with smaller ids may be gone (CLICK_RETENTION_DAYS): a sale keeps what mattered of its click on its receipt. */
export function clicksPrunedBefore(db: Queries): Promise<string> {
  return readPruned(db)
}

async function addMonths(platform: Platform): Promise<void> {
  const { database } = platform
  const there = await clickParts(database.reader)
  const last = there.at(-1)?.to ?? ''
  for (const month of monthsFrom(platform.clock.now(), MONTHS_AHEAD)) {
    if (firstIdAt(month.start) < last) continue
    try {
      await database.transaction((tx) => addPart(tx, month))
    } catch (error) {
      // Without it the month's clicks go where all others are: nothing is lost but the ease of taking them away.
      platform.log.warn({ err: error, month: month.table }, 'a month of clicks gets no table of its own')
    }
  }
}

async function pruneRows({ database }: Platform, before: string): Promise<number> {
  await database.transaction((tx) => notePruned(tx, before))
  let pruned = 0
  for (;;) {
    const some = await database.transaction((tx) => deleteClicks(tx, before, ROWS_AT_ONCE))
    pruned += some
    if (some < ROWS_AT_ONCE) return pruned
  }
}

async function pruneMonths({ database }: Platform, before: string): Promise<number> {
  const old = (await clickParts(database.reader)).filter(({ to }) => to <= before)
  for (const { table, to } of old) {
    await database.transaction((tx) => notePruned(tx, to))
    await database.transaction((tx) => dropPart(tx, table))
  }
  return old.length
}
