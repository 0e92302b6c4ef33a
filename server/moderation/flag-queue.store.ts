import { sql } from 'kysely'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { FlagRow } from './flags.store.ts'

export interface FlagFilter {
  kind?: string | undefined
  severity?: FlagRow['severity'] | undefined
  status?: FlagRow['status'] | undefined
}

/** Newest first, from the one before `before`. */
export function findFlags(
  db: Queries,
  filter: FlagFilter,
  before: string | null,
  limit: number,
): Promise<FlagRow[]> {
  let query = db.selectFrom('flags').selectAll().orderBy('id', 'desc').limit(limit)
  if (filter.kind !== undefined) query = query.where('kind', '=', filter.kind)
  if (filter.severity !== undefined) query = query.where('severity', '=', filter.severity)
  if (filter.status !== undefined) query = query.where('status', '=', filter.status)
  if (before !== null) query = query.where('id', '<', before)
  return query.execute()
}

export function findFlag(db: Queries, id: string): Promise<FlagRow | undefined> {
  return db.selectFrom('flags').selectAll().where('id', '=', id).executeTakeFirst()
}

export function findOpenFlag(
  db: Queries,
  kind: string,
  subjectType: string,
  subjectId: string,
): Promise<FlagRow | undefined> {
  return db
    .selectFrom('flags')
    .selectAll()
    .where('kind', '=', kind)
    .where('subject_type', '=', subjectType)
    .where('subject_id', '=', subjectId)
    .where('status', '=', 'open')
    .executeTakeFirst()
}

/** Compare and set: `undefined` when the flag is not open. */
export function markResolved(
  tx: Tx,
  id: string,
  note: string,
  resolvedAt: number,
): Promise<FlagRow | undefined> {
  return tx
    .updateTable('flags')
    .set({ status: 'resolved', note, resolved_at: resolvedAt })
    .where('id', '=', id)
    .where('status', '=', 'open')
    .returningAll()
    .executeTakeFirst()
}

/** How many flags of a kind about one subject have been resolved. */
/** Open flags of a kind whose evidence names a merchant. */
export async function countOpenOfMerchant(db: Queries, kind: string, merchantId: string): Promise<number> {
  const named =
    dialectOf(db) === 'sqlite'
      ? sql<string>`json_extract(evidence, '$.merchant_id')`
      : sql<string>`evidence::jsonb ->> 'merchant_id'`
  const { count } = await db
    .selectFrom('flags')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('kind', '=', kind)
    .where('status', '=', 'open')
    .where(named, '=', merchantId)
    .executeTakeFirstOrThrow()
  return count
}

export async function countResolved(db: Queries, kind: string, subjectId: string): Promise<number> {
  const { count } = await db
    .selectFrom('flags')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('subject_id', '=', subjectId)
    .where('kind', '=', kind)
    .where('status', '=', 'resolved')
    .executeTakeFirstOrThrow()
  return count
}
