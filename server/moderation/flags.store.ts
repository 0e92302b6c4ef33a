import { type Selectable, sql } from 'kysely'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'

export type FlagRow = Selectable<Schema['flags']>

/** Flags of one statement: a long one is built in one go, and requests wait meanwhile. */
const TOGETHER = 100

/** Each about a subject of its own; in an order in which no two processes wait for each other. */
export async function insertOrRefreshFlags(tx: Tx, flags: readonly FlagRow[]): Promise<void> {
  const sorted = flags.toSorted((one, other) => (one.subject_id < other.subject_id ? -1 : 1))
  for (let first = 0; first < sorted.length; first += TOGETHER) {
    await tx
      .insertInto('flags')
      .values(sorted.slice(first, first + TOGETHER))
      .onConflict((conflict) =>
        conflict
          .columns(['kind', 'subject_type', 'subject_id'])
          // Written out, since PostgreSQL finds no index for a condition that it is told later.
          .where('status', '=', sql.lit('open'))
          .doUpdateSet((eb) => ({
            summary: eb.ref('excluded.summary'),
            evidence: eb.ref('excluded.evidence'),
          })),
      )
      .execute()
  }
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

export function findFlagsOfKindAbout(
  db: Queries,
  kind: string,
  subjectId: string,
  limit: number,
): Promise<FlagRow[]> {
  return db
    .selectFrom('flags')
    .selectAll()
    .where('kind', '=', kind)
    .where('subject_id', '=', subjectId)
    .orderBy('id', 'desc')
    .limit(limit)
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
