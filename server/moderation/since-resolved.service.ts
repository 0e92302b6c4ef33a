import type { Tx } from '../platform/database/database.ts'
import { type FlagKind, resolvedFlagTimes } from './flags.service.ts'

export interface Pattern<Tally> {
  kind: FlagKind
  /** When the window of this pattern begins, epoch ms. */
  windowStart: number
  /** Counts for these subjects what has happened since a moment (epoch ms). */
  tally(subjectIds: readonly string[], since: number): Promise<Map<string, Tally>>
  isUnusual(tally: Tally): boolean
}

/**
 * The subjects for which a pattern is out of the ordinary, with what was counted. What a person has looked at already, and
 * resolved the flag of, does not count again: for such a subject the window begins at that moment.
 */
export async function unusualSubjects<Tally>(
  tx: Tx,
  pattern: Pattern<Tally>,
  subjectIds: readonly string[],
): Promise<Map<string, Tally>> {
  const tallies = await pattern.tally(subjectIds, pattern.windowStart)
  const unusual = new Map([...tallies].filter(([, tally]) => pattern.isUnusual(tally)))
  const resolved = await resolvedFlagTimes(tx, pattern.kind, [...unusual.keys()])
  for (const [subjectId, resolvedAt] of resolved) {
    if (resolvedAt < pattern.windowStart) continue
    unusual.delete(subjectId)
    const since = (await pattern.tally([subjectId], resolvedAt)).get(subjectId)
    if (since !== undefined && pattern.isUnusual(since)) unusual.set(subjectId, since)
  }
  return unusual
}
