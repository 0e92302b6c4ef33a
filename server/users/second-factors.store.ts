import type { Selectable } from 'kysely'
import type { Role } from '../../shared/schemas/common.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'

export type SecondFactorRow = Selectable<Schema['second_factors']>

export function findSecondFactor(db: Queries, userId: string): Promise<SecondFactorRow | undefined> {
  return db.selectFrom('second_factors').selectAll().where('user_id', '=', userId).executeTakeFirst()
}

/** How many active users of a role have no confirmed factor. */
export async function countWithoutSecondFactor(db: Queries, role: Role): Promise<number> {
  const { count } = await db
    .selectFrom('users')
    .leftJoin('second_factors', 'second_factors.user_id', 'users.id')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('users.role', '=', role)
    .where('users.suspended_at', 'is', null)
    .where('second_factors.confirmed_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function insertSecondFactor(tx: Tx, row: SecondFactorRow): Promise<void> {
  await tx.insertInto('second_factors').values(row).execute()
}

/** Confirms a factor that has not changed since it was read; returns whether it did. */
export async function confirmSecondFactor(
  tx: Tx,
  row: SecondFactorRow,
  confirmed: { confirmed_at: number; last_step: number },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('second_factors')
    .set(confirmed)
    .where('user_id', '=', row.user_id)
    .where('secret_encrypted', '=', row.secret_encrypted)
    .where('confirmed_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Uses up a time step and those before it; returns `false` if it was used already. One of two callers at the same time gets it. */
export async function takeStep(tx: Tx, userId: string, step: number): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('second_factors')
    .set({ last_step: step })
    .where('user_id', '=', userId)
    .where('confirmed_at', 'is not', null)
    .where('last_step', '<', step)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Deletes a user's factor and recovery codes; returns whether there was a confirmed factor. */
export async function deleteSecondFactor(tx: Tx, userId: string): Promise<boolean> {
  await deleteRecoveryCodes(tx, userId)
  const deleted = await tx
    .deleteFrom('second_factors')
    .where('user_id', '=', userId)
    .returning('confirmed_at')
    .executeTakeFirst()
  return deleted !== undefined && deleted.confirmed_at !== null
}

export async function deleteRecoveryCodes(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('recovery_codes').where('user_id', '=', userId).execute()
}

export async function insertRecoveryCodes(tx: Tx, userId: string, hashes: readonly string[]): Promise<void> {
  const rows = hashes.map((code_hash) => ({ user_id: userId, code_hash }))
  await tx.insertInto('recovery_codes').values(rows).execute()
}

/** Uses up a recovery code; returns `false` if the user has no such code. */
export async function takeRecoveryCode(tx: Tx, userId: string, hash: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('recovery_codes')
    .where('user_id', '=', userId)
    .where('code_hash', '=', hash)
    .executeTakeFirst()
  return numDeletedRows === 1n
}

export async function countRecoveryCodes(db: Queries, userId: string): Promise<number> {
  const { count } = await db
    .selectFrom('recovery_codes')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** All users' factors after the user id `after`, by user id. */
export function secondFactorsAfter(
  db: Queries,
  after: string | null,
  limit: number,
): Promise<SecondFactorRow[]> {
  return db
    .selectFrom('second_factors')
    .selectAll()
    .$if(after !== null, (query) => query.where('user_id', '>', after ?? ''))
    .orderBy('user_id')
    .limit(limit)
    .execute()
}

/** Replaces a factor's encrypted column if it has not changed since; returns whether it did. */
export async function resealSecondFactor(
  tx: Tx,
  row: SecondFactorRow,
  secret_encrypted: string,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('second_factors')
    .set({ secret_encrypted })
    .where('user_id', '=', row.user_id)
    .where('secret_encrypted', '=', row.secret_encrypted)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}
