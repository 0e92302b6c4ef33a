import type { Selectable } from 'kysely'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { ApplicationStatus } from './application.rule.ts'

export type ApplicationRow = Selectable<Schema['applications']>

/** Whose applications a list shows. */
export type ApplicationScope = { merchantId: string; offerId?: string } | { creatorId: string }

/** Adds a pending application; `false` when the creator has one alive for this offer. */
export async function insertApplication(tx: Tx, row: ApplicationRow): Promise<boolean> {
  const added = await tx
    .insertInto('applications')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst()
  return added !== undefined
}

/** A creator's applications since a moment (epoch ms), in any status. */
export async function countApplicationsSince(tx: Tx, creatorId: string, since: number): Promise<number> {
  const { applications } = await tx
    .selectFrom('applications')
    .select((eb) => eb.fn.countAll<number>().as('applications'))
    .where('creator_id', '=', creatorId)
    .where('created_at', '>', since)
    .executeTakeFirstOrThrow()
  return applications
}

/** The statuses of a creator's applications to an offer. */
export async function statusesOf(tx: Tx, offerId: string, creatorId: string): Promise<ApplicationStatus[]> {
  const rows = await tx
    .selectFrom('applications')
    .select('status')
    .where('offer_id', '=', offerId)
    .where('creator_id', '=', creatorId)
    .execute()
  return rows.map((row) => row.status)
}

/**
 * An application to one of the merchant's offers, held until the transaction ends: a write that changes nothing is the
 * row lock that SQLite and PostgreSQL have in common.
 */
export function lockApplication(tx: Tx, merchantId: string, id: string): Promise<ApplicationRow | undefined> {
  return tx
    .updateTable('applications')
    .set((eb) => ({ created_at: eb.ref('created_at') }))
    .where('id', '=', id)
    .where('merchant_id', '=', merchantId)
    .returningAll()
    .executeTakeFirst()
}

/** Decides an application that is still pending; the decided row, or `undefined` when it was decided already. */
export function decidePending(
  tx: Tx,
  id: string,
  decision: { status: 'approved' | 'rejected'; decision_reason: string | null; decided_at: number },
): Promise<ApplicationRow | undefined> {
  return tx
    .updateTable('applications')
    .set(decision)
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .returningAll()
    .executeTakeFirst()
}

/** Up to `limit` applications in the caller's scope, newest first, after the id `after`. */
export function listApplications(
  db: Queries,
  scope: ApplicationScope,
  status: ApplicationStatus | undefined,
  after: string | null,
  limit: number,
): Promise<ApplicationRow[]> {
  let query = db.selectFrom('applications').selectAll()
  if ('creatorId' in scope) query = query.where('creator_id', '=', scope.creatorId)
  else {
    query = query.where('merchant_id', '=', scope.merchantId)
    if (scope.offerId !== undefined) query = query.where('offer_id', '=', scope.offerId)
  }
  if (status !== undefined) query = query.where('status', '=', status)
  if (after !== null) query = query.where('id', '<', after)
  return query.orderBy('id', 'desc').limit(limit).execute()
}
