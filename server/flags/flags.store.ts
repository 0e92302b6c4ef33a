import { type Selectable, type SelectQueryBuilder, sql } from 'kysely'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { type NewRow, noteChange, transactionKeys, withDigest } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'

export type FlagRow = Selectable<Schema['flags']>

export interface FlagFilter {
  kind?: string | undefined
  severity?: FlagRow['severity'] | undefined
  status?: FlagRow['status'] | undefined
  subjectType?: string | undefined
  subjectId?: string | undefined
}

/** Newest first: up to `limit` flags, older than the id `before`. */
export function findFlags(
  db: Queries | Tx,
  filter: FlagFilter,
  { before, limit }: { before?: string | null; limit?: number } = {},
): Promise<FlagRow[]> {
  let query = matching(db.selectFrom('flags'), filter).selectAll().orderBy('id', 'desc')
  if (before) query = query.where('id', '<', before)
  if (limit !== undefined) query = query.limit(limit)
  return query.execute()
}

/** With `merchantId`, only flags whose evidence names this merchant. */
export async function countFlags(db: Queries | Tx, filter: FlagFilter, merchantId?: string): Promise<number> {
  let query = matching(db.selectFrom('flags'), filter)
  if (merchantId !== undefined) {
    const named =
      dialectOf(db) === 'sqlite'
        ? sql<string>`json_extract(evidence, '$.merchant_id')`
        : sql<string>`evidence::jsonb ->> 'merchant_id'`
    query = query.where(named, '=', merchantId)
  }
  const { count } = await query.select((eb) => eb.fn.countAll<number>().as('count')).executeTakeFirstOrThrow()
  return count
}

/** Kinds without an open flag are missing. */
export function countOpenFlags(db: Queries): Promise<{ kind: string; count: number }[]> {
  return db
    .selectFrom('flags')
    .select((eb) => ['kind', eb.fn.countAll<number>().as('count')])
    .where('status', '=', 'open')
    .groupBy('kind')
    .execute()
}

function matching(query: SelectQueryBuilder<Schema, 'flags', object>, filter: FlagFilter) {
  const { kind, severity, status, subjectType, subjectId } = filter
  return query
    .$if(kind !== undefined, (some) => some.where('kind', '=', kind ?? ''))
    .$if(severity !== undefined, (some) => some.where('severity', '=', severity ?? 'low'))
    .$if(status !== undefined, (some) => some.where('status', '=', status ?? 'open'))
    .$if(subjectType !== undefined, (some) => some.where('subject_type', '=', subjectType ?? ''))
    .$if(subjectId !== undefined, (some) => some.where('subject_id', '=', subjectId ?? ''))
}

export function findFlag(db: Queries, id: string): Promise<FlagRow | undefined> {
  return db.selectFrom('flags').selectAll().where('id', '=', id).executeTakeFirst()
}

/** When each subject's flag of this kind was last resolved, epoch ms; subjects without one are missing. */
export async function resolvedFlagTimes(
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

/** Building a long statement blocks the event loop. */
const FLAGS_PER_STATEMENT = 100

/** Inserts flags, or refreshes summary and evidence of the open ones. Each has a subject of its own; sorted to avoid deadlocks. */
export async function insertOrRefreshFlags(tx: Tx, flags: readonly NewRow<'flags'>[]): Promise<void> {
  const keys = transactionKeys()
  const whole = flags.map((flag) => withDigest(keys, 'flags', { note: null, resolved_at: null, ...flag }))
  const sorted = whole.toSorted((one, other) => (one.subject_id < other.subject_id ? -1 : 1))
  for (let first = 0; first < sorted.length; first += FLAGS_PER_STATEMENT) {
    const batch = sorted.slice(first, first + FLAGS_PER_STATEMENT)
    const kept = await tx
      .insertInto('flags')
      .values(batch)
      .onConflict((conflict) =>
        conflict
          .columns(['kind', 'subject_type', 'subject_id'])
          // A literal, because PostgreSQL finds no partial index for a bound value.
          .where('status', '=', sql.lit('open'))
          .doUpdateSet((eb) => ({
            summary: eb.ref('excluded.summary'),
            evidence: eb.ref('excluded.evidence'),
          })),
      )
      .returning('row_digest')
      .execute()
    const digests = new Set(kept.map((row) => row.row_digest))
    for (const { row_digest } of batch) if (digests.has(row_digest)) noteChange('flags', null, row_digest)
  }
}
