import { type Selectable, type SelectQueryBuilder, sql } from 'kysely'
import { countOf } from '../platform/database/bulk-values.ts'
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
  /** Only flags whose evidence names this merchant. */
  merchantId?: string | undefined
}

function matching(db: Queries, { subjectType, subjectId, merchantId, ...rest }: FlagFilter) {
  const columns = Object.entries({ ...rest, subject_type: subjectType, subject_id: subjectId })
  const query = columns.reduce<SelectQueryBuilder<Schema, 'flags', object>>(
    (query, [column, value]) => (value === undefined ? query : query.where(sql.ref(column), '=', value)),
    db.selectFrom('flags'),
  )
  if (merchantId === undefined) return query
  const json = dialectOf(db) === 'sqlite' ? sql`evidence` : sql`cast(evidence as jsonb)`
  return query.where(sql`${json} ->> 'merchant_id'`, '=', merchantId)
}

/** Newest first: up to `limit` flags, older than the id `before`. */
export function findFlags(
  db: Queries,
  filter: FlagFilter,
  { before, limit }: { before?: string | null; limit?: number } = {},
): Promise<FlagRow[]> {
  let query = matching(db, filter).selectAll().orderBy('id', 'desc')
  if (before) query = query.where('id', '<', before)
  if (limit !== undefined) query = query.limit(limit)
  return query.execute()
}

export function countFlags(db: Queries, filter: FlagFilter): Promise<number> {
  return countOf(matching(db, filter))
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

export function findFlag(db: Queries, id: string): Promise<FlagRow | undefined> {
  return db.selectFrom('flags').selectAll().where('id', '=', id).executeTakeFirst()
}

/** When each subject's flag of this kind was last resolved, epoch ms; subjects without one are missing. */
export async function resolvedFlagTimes(db: Queries, kind: string, subjectIds: readonly string[]) {
  if (subjectIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('flags')
    .select((eb) => ['subject_id', eb.fn.max<number>('resolved_at').as('at')])
    .where('kind', '=', kind)
    .where('subject_id', 'in', subjectIds)
    .where('status', '=', 'resolved')
    .groupBy('subject_id')
    .execute()
  return new Map(rows.map((row) => [row.subject_id, row.at]))
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
