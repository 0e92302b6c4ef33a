import { type Selectable, sql } from 'kysely'
import type { Role } from '../../shared/schemas/common.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { countOf } from '../platform/database/bulk-values.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import {
  deleteRows,
  insertRows,
  type NewRow,
  requireAuthentic,
  takeRows,
  updateRows,
} from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'

export type SecondFactorRow = Selectable<Schema['second_factors']>

/** Throws `TamperedRow` and `UnknownKeyError`. */
export async function findSecondFactor(
  db: Queries,
  keys: AppKeys,
  userId: string,
): Promise<SecondFactorRow | undefined> {
  const row = await db
    .selectFrom('second_factors')
    .selectAll()
    .where('user_id', '=', userId)
    .executeTakeFirst()
  if (row) requireAuthentic(keys, 'second_factors', row)
  return row
}

/** How many active users of a role have no confirmed factor. */
export function countWithoutSecondFactor(db: Queries, role: Role): Promise<number> {
  return countOf(
    db
      .selectFrom('users')
      .leftJoin('second_factors', 'second_factors.user_id', 'users.id')
      .where('users.role', '=', role)
      .where('users.suspended_at', 'is', null)
      .where('second_factors.confirmed_at', 'is', null),
  )
}

export async function insertSecondFactor(tx: Tx, row: NewRow<'second_factors'>): Promise<void> {
  await insertRows(tx, 'second_factors', [row])
}

/** Confirms a factor that has not changed since it was read; returns whether it did. */
export async function confirmSecondFactor(
  tx: Tx,
  row: SecondFactorRow,
  confirmed: { confirmed_at: number; last_step: number },
): Promise<boolean> {
  const { user_id, secret_encrypted } = row
  const unchanged = { user_id, secret_encrypted, confirmed_at: null }
  return (await updateRows(tx, 'second_factors', unchanged, confirmed)).length === 1
}

/** Uses up a time step and those before it; returns `false` if it was used already. One of two callers at the same time gets it. */
export async function takeStep(tx: Tx, userId: string, step: number): Promise<boolean> {
  const unused = sql`user_id = ${userId} and confirmed_at is not null and last_step < ${step}`
  return (await updateRows(tx, 'second_factors', unused, { last_step: step })).length === 1
}

/** Deletes a user's factor and recovery codes; returns whether there was a confirmed factor. */
export async function deleteSecondFactor(tx: Tx, userId: string): Promise<boolean> {
  await deleteRecoveryCodes(tx, userId)
  const [deleted] = await deleteRows(tx, 'second_factors', { user_id: userId })
  return deleted !== undefined && deleted.confirmed_at !== null
}

export async function deleteRecoveryCodes(tx: Tx, userId: string): Promise<void> {
  await deleteRows(tx, 'recovery_codes', { user_id: userId })
}

export async function insertRecoveryCodes(tx: Tx, userId: string, hashes: readonly string[]): Promise<void> {
  await insertRows(
    tx,
    'recovery_codes',
    hashes.map((code_hash) => ({ user_id: userId, code_hash })),
  )
}

/** Uses up a recovery code; returns `false` if the user has no such code. Throws `TamperedRow` and `UnknownKeyError`. */
export async function takeRecoveryCode(tx: Tx, userId: string, hash: string): Promise<boolean> {
  return (await takeRows(tx, 'recovery_codes', { user_id: userId, code_hash: hash })).length === 1
}

export function countRecoveryCodes(db: Queries, userId: string): Promise<number> {
  return countOf(db.selectFrom('recovery_codes').where('user_id', '=', userId))
}
