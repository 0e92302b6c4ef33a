import type { Queries } from '../platform/database/database.ts'
import type { FlagRow } from './flags.store.ts'

/** The flag of a kind about something that was resolved last. */
export function lastResolvedFlag(db: Queries, kind: string, subjectId: string): Promise<FlagRow | undefined> {
  return db
    .selectFrom('flags')
    .selectAll()
    .where('subject_id', '=', subjectId)
    .where('kind', '=', kind)
    .where('status', '=', 'resolved')
    .orderBy('resolved_at', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
}
