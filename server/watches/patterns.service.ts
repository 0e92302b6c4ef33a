import {
  closeFlag,
  type FlagKind,
  type NewFlag,
  openFlags,
  raiseFlags,
  resolvedFlagTimes,
} from '../flags/flags.service.ts'
import type { Tx } from '../platform/database/database.ts'
import { lockWatermark, setWatermark } from '../platform/database/watermarks.ts'
import type { Platform } from '../platform/platform.ts'
import { activityOf } from '../stores/store-activity.service.ts'

/** Something that is unusual from some number on, counted for each subject. */
export interface Pattern<Tally> extends Pick<NewFlag, 'kind' | 'subjectType'> {
  /** The start of the pattern's window, epoch ms. */
  windowStart: number
  /** Counts for these subjects what happened since a time (epoch ms). */
  tally(subjectIds: readonly string[], since: number): Promise<Map<string, Tally>>
  isUnusual(tally: Tally): boolean
  flag(subjectId: string, tally: Tally): Promise<FlagText> | FlagText
}

type FlagText = Pick<NewFlag, 'summary' | 'evidence'>

/**
 * Flags the subjects for which a pattern is unusual. For a subject whose flag was resolved within the window, the window starts at that time,
 * so that reviewed events do not count again.
 */
export async function flagUnusual<Tally>(
  platform: Platform,
  tx: Tx,
  subjectIds: readonly (string | null)[],
  pattern: Pattern<Tally>,
): Promise<void> {
  const { kind, subjectType, windowStart } = pattern
  const ids = [...new Set(subjectIds)].filter((id) => id !== null)
  const tallies = await pattern.tally(ids, windowStart)
  const unusual = new Map([...tallies].filter(([, tally]) => pattern.isUnusual(tally)))
  const resolved = await resolvedFlagTimes(tx, kind, [...unusual.keys()])
  for (const [subjectId, resolvedAt] of resolved) {
    if (resolvedAt < windowStart) continue
    unusual.delete(subjectId)
    const since = (await pattern.tally([subjectId], resolvedAt)).get(subjectId)
    if (since !== undefined && pattern.isUnusual(since)) unusual.set(subjectId, since)
  }
  const flags: NewFlag[] = []
  for (const [subjectId, tally] of unusual)
    flags.push({ kind, subjectType, subjectId, ...(await pattern.flag(subjectId, tally)) })
  await raiseFlags(platform, tx, flags)
}

/** What a watch reads from its watermark on, in the order of ids. */
export interface NewRows<Row> {
  watermark: string
  /** Where the first run begins. */
  first: string
  /** Up to this id, which is excluded. */
  to: string
  /** Rows of one run. */
  limit: number
  read(range: { after: string; to: string; limit: number }): Promise<Row[]>
}

/**
 * Runs `work` on the rows since the last run, and up to which ids they are, and moves the watermark, which is locked: several workers take
 * turns. Returns whether there are more.
 */
export async function withNewRows<Row extends { id: string }>(
  tx: Tx,
  { watermark, first, to, limit, read }: NewRows<Row>,
  work: (rows: Row[], range: { after: string; to: string }) => Promise<void>,
): Promise<boolean> {
  const after = await lockWatermark(tx, watermark, first)
  if (to <= after) return false
  const rows = await read({ after, to, limit })
  const more = rows.length === limit
  const end = (more && rows.at(-1)?.id) || to
  await work(rows, { after, to: end })
  await setWatermark(tx, watermark, end)
  return more
}

/** Resolves flags about stores that have sent something since the time in `field` of their evidence. Those of stores out of use wait for a person. */
export async function closeAnswered(
  platform: Platform,
  kind: FlagKind,
  field: string,
  note: string,
): Promise<void> {
  const { database, clock } = platform
  const flags = await openFlags(database.reader, kind)
  const ids = flags.map((flag) => flag.subject_id)
  const activity = await activityOf(database.reader, ids, clock.now())
  for (const { subject_id: subjectId, evidence } of flags) {
    const lastEventAt = activity.get(subjectId)?.lastEventAt ?? 0
    if (lastEventAt <= Date.parse(JSON.parse(evidence)[field])) continue
    await database.transaction((tx) =>
      closeFlag(platform, tx, { kind, subjectType: 'store', subjectId }, note),
    )
  }
}
