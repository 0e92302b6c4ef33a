import type { SelectQueryBuilder } from 'kysely'
import { type NewFlag, raiseFlags, resolvedFlagTimes } from '../flags/flags.service.ts'
import type { Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { lockWatermark, setWatermark } from '../platform/database/watermarks.ts'
import { firstIdAt } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { type IdRange, rowsBetween } from './watches.store.ts'

type FlagText = Pick<NewFlag, 'summary' | 'evidence'>

/** Something that is unusual from some number on, counted for each subject. */
export interface Pattern<Tally> extends Pick<NewFlag, 'kind' | 'subjectType'> {
  subjects: readonly (string | null)[]
  /** The start of the pattern's window, epoch ms. */
  windowStart: number
  /** Counts for these subjects what happened since a time (epoch ms). */
  tally(subjectIds: readonly string[], since: number): Promise<Map<string, Tally>>
  /** `null` for a usual tally. */
  flag(tally: Tally, subjectId: string): FlagText | null
}

/**
 * Flags the subjects for which a pattern is unusual. For a subject whose flag was resolved within the window, the window starts at that time,
 * so that reviewed events do not count again.
 */
export async function flagUnusual<Tally>(platform: Platform, tx: Tx, pattern: Pattern<Tally>): Promise<void> {
  const { kind, subjectType, windowStart } = pattern
  const ids = [...new Set(pattern.subjects)].filter((id) => id !== null)
  if (ids.length === 0) return
  const flagOf = (id: string, tallies: Map<string, Tally>) => {
    const tally = tallies.get(id)
    return tally === undefined ? null : pattern.flag(tally, id)
  }
  const tallies = await pattern.tally(ids, windowStart)
  const unusual = ids.filter((id) => flagOf(id, tallies) !== null)
  const resolved = await resolvedFlagTimes(tx, kind, unusual)
  const flags: NewFlag[] = []
  for (const subjectId of unusual) {
    const resolvedAt = resolved.get(subjectId) ?? -1
    const counted = resolvedAt < windowStart ? tallies : await pattern.tally([subjectId], resolvedAt)
    const text = flagOf(subjectId, counted)
    if (text) flags.push({ kind, subjectType, subjectId, ...text })
  }
  await raiseFlags(platform, tx, flags)
}

/** A row commits within this time after its id is made, ms. */
export const COMMIT_LAG_MS = 30_000

/** What a watch reads from its watermark on, in the order of ids. */
interface NewRows<Table extends keyof Schema, Row> {
  watermark: string
  /** Where the first run begins. */
  first: string
  /** Up to this id, which is excluded. */
  to?: string
  /** Rows of one run. */
  limit: number
  query: SelectQueryBuilder<Schema, Table, Row>
}

/**
 * Runs `work` on the rows since the last run, and up to which ids they are, and moves the watermark, which is locked: several workers take
 * turns. Returns whether there are more.
 */
export async function withNewRows<Table extends keyof Schema, Row extends { id: string }>(
  { clock }: Platform,
  tx: Tx,
  { watermark, first, to = firstIdAt(clock.now() - COMMIT_LAG_MS), limit, query }: NewRows<Table, Row>,
  work: (rows: Row[], range: IdRange) => Promise<void>,
): Promise<boolean> {
  const after = await lockWatermark(tx, watermark, first)
  if (to <= after) return false
  const rows = await rowsBetween(query, { after, to }, limit)
  const more = rows.length === limit
  const end = (more && rows.at(-1)?.id) || to
  await work(rows, { after, to: end })
  await setWatermark(tx, watermark, end)
  return more
}
