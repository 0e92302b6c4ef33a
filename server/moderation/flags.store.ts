import type { Selectable } from 'kysely'
import type { Queries, Tx } from '../platform/database.ts'
import type { Schema } from '../platform/schema.ts'

export type FlagRow = Selectable<Schema['flags']>

export async function insertOrRefreshFlag(tx: Tx, flag: FlagRow): Promise<void> {
  const refreshed = await tx
    .updateTable('flags')
    .set({ summary: flag.summary, evidence: flag.evidence })
    .where('kind', '=', flag.kind)
    .where('subject_type', '=', flag.subject_type)
    .where('subject_id', '=', flag.subject_id)
    .where('status', '=', 'open')
    .executeTakeFirst()
  if (refreshed.numUpdatedRows > 0n) return
  await tx
    .insertInto('flags')
    .values(flag)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export function findOpenFlags(db: Queries, kind: string, subjectId: string | null): Promise<FlagRow[]> {
  return db
    .selectFrom('flags')
    .selectAll()
    .where('kind', '=', kind)
    .where('status', '=', 'open')
    .$if(subjectId !== null, (query) => query.where('subject_id', '=', subjectId ?? ''))
    .orderBy('id', 'desc')
    .execute()
}

export async function lastResolvedAt(
  db: Queries,
  kind: string,
  subjectIds: readonly string[],
): Promise<Map<string, number>> {
  if (subjectIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('flags')
    .select((query) => ['subject_id', query.fn.max('resolved_at').as('at')])
    .where('kind', '=', kind)
    .where('subject_id', 'in', subjectIds)
    .where('status', '=', 'resolved')
    .groupBy('subject_id')
    .execute()
  return new Map(rows.flatMap((row) => (row.at === null ? [] : [[row.subject_id, Number(row.at)] as const])))
}
