import type { Role } from '../../shared/schemas/common.ts'
import type { Queries, Tx } from '../platform/database.ts'

export interface UserRow {
  id: string
  email: string
  password_hash: string
  role: Role
  display_name: string
  suspended_at: number | null
  created_at: number
}

const COLUMNS = [
  'id',
  'email',
  'password_hash',
  'role',
  'display_name',
  'suspended_at',
  'created_at',
] as const

/** Answers whether the row went in; `false` when the e-mail is taken. */
export async function insertUser(tx: Tx, row: UserRow): Promise<boolean> {
  const inserted = await tx
    .insertInto('users')
    .values(row)
    .onConflict((conflict) => conflict.column('email').doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

export function findUserById(db: Queries, id: string): Promise<UserRow | undefined> {
  return db.selectFrom('users').select(COLUMNS).where('id', '=', id).executeTakeFirst()
}

export function findUserByEmail(db: Queries, email: string): Promise<UserRow | undefined> {
  return db.selectFrom('users').select(COLUMNS).where('email', '=', email).executeTakeFirst()
}

export type PersonRow = Pick<UserRow, 'id' | 'email' | 'display_name' | 'suspended_at'>

/** What other concepts ask about users, for many at once. */
export function findPeople(db: Queries, ids: readonly string[]): Promise<PersonRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  return db
    .selectFrom('users')
    .select(['id', 'email', 'display_name', 'suspended_at'])
    .where('id', 'in', ids)
    .execute()
}

export interface UserFilter {
  role?: Role
  suspended?: boolean
}

/** Newest first, from the one before `before`. */
export function findUsers(
  db: Queries,
  filter: UserFilter,
  before: string | null,
  limit: number,
): Promise<UserRow[]> {
  let query = db.selectFrom('users').select(COLUMNS).orderBy('id', 'desc').limit(limit)
  if (filter.role) query = query.where('role', '=', filter.role)
  if (filter.suspended !== undefined) {
    query = query.where('suspended_at', filter.suspended ? 'is not' : 'is', null)
  }
  if (before !== null) query = query.where('id', '<', before)
  return query.execute()
}

export async function setDisplayName(tx: Tx, id: string, name: string): Promise<void> {
  await tx.updateTable('users').set({ display_name: name }).where('id', '=', id).execute()
}

/** `from` is the hash that the caller's password was compared with; `null` replaces whatever is there. */
export async function setPasswordHash(
  tx: Tx,
  id: string,
  from: string | null,
  hash: string,
): Promise<boolean> {
  let query = tx.updateTable('users').set({ password_hash: hash }).where('id', '=', id)
  if (from !== null) query = query.where('password_hash', '=', from)
  return (await query.executeTakeFirst()).numUpdatedRows > 0n
}

/**
 * Holds an active account still until the transaction ends: a password change, a suspension or another session of the
 * same account waits, or has happened and then the answer is `false`. PostgreSQL would otherwise let both pass.
 */
export async function holdActiveUser(tx: Tx, id: string, passwordHash: string): Promise<boolean> {
  const held = await tx
    .updateTable('users')
    .set({ password_hash: passwordHash })
    .where('id', '=', id)
    .where('password_hash', '=', passwordHash)
    .where('suspended_at', 'is', null)
    .executeTakeFirst()
  return held.numUpdatedRows > 0n
}

/** Holds an account's row until the transaction ends. */
export async function lockUser(tx: Tx, id: string): Promise<void> {
  await tx
    .updateTable('users')
    .set((eb) => ({ role: eb.ref('role') }))
    .where('id', '=', id)
    .execute()
}

/** Compare and set: answers `false` when the account was not in the other state. */
export async function setSuspension(tx: Tx, id: string, suspendedAt: number | null): Promise<boolean> {
  const moved = await tx
    .updateTable('users')
    .set({ suspended_at: suspendedAt })
    .where('id', '=', id)
    .where('suspended_at', suspendedAt === null ? 'is not' : 'is', null)
    .executeTakeFirst()
  return moved.numUpdatedRows > 0n
}

/** Holds every admin's row until the transaction ends, so that two admins cannot suspend each other at once. */
export async function holdAdmins(tx: Tx): Promise<void> {
  await tx.updateTable('users').set({ role: 'admin' }).where('role', '=', 'admin').execute()
}

/** How many admins are active beside this user. */
export async function countOtherActiveAdmins(tx: Tx, id: string): Promise<number> {
  const { count } = await tx
    .selectFrom('users')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('role', '=', 'admin')
    .where('suspended_at', 'is', null)
    .where('id', '<>', id)
    .executeTakeFirstOrThrow()
  return count
}
