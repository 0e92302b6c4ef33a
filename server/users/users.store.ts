import { type Selectable, sql } from 'kysely'
import type { Role } from '../../shared/schemas/common.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { countOf } from '../platform/database/bulk-values.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import {
  type Condition,
  deleteRows,
  insertRows,
  insertRowsIfNew,
  joinedRow,
  type NewRow,
  requireAuthentic,
  takeRows,
  updateRows,
} from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { TokenPurpose } from './user.entity.ts'

export type UserRow = Selectable<Schema['users']>
export type DestinationRow = Selectable<Schema['payout_destinations']>
export type BillingAccountRow = Selectable<Schema['billing_accounts']>
export type AccountRow = DestinationRow | BillingAccountRow

/** `undefined` when the e-mail is taken. */
export async function insertUser(tx: Tx, row: NewRow<'users'>): Promise<UserRow | undefined> {
  return (await insertRowsIfNew(tx, 'users', [row]))[0]
}

export function findUserById(db: Queries, id: string): Promise<UserRow | undefined> {
  return db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()
}

export function findUserByEmail(db: Queries, email: string): Promise<UserRow | undefined> {
  return db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst()
}

export type PersonRow = Pick<UserRow, 'id' | 'email' | 'display_name' | 'suspended_at'>

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

/** Newest first, before the id `before`. */
export function findUsers(
  db: Queries,
  filter: UserFilter,
  before: string | null,
  limit: number,
): Promise<UserRow[]> {
  let query = db.selectFrom('users').selectAll().orderBy('id', 'desc').limit(limit)
  if (filter.role) query = query.where('role', '=', filter.role)
  if (filter.suspended !== undefined) {
    query = query.where('suspended_at', filter.suspended ? 'is not' : 'is', null)
  }
  if (before !== null) query = query.where('id', '<', before)
  return query.execute()
}

/** Locks a user's row until the transaction ends. */
export async function lockUser(tx: Tx, id: string): Promise<void> {
  await tx
    .updateTable('users')
    .set((eb) => ({ role: eb.ref('role') }))
    .where('id', '=', id)
    .execute()
}

/** Locks all admins' rows until the transaction ends, so that two admins cannot suspend each other at the same time. */
export async function lockAdmins(tx: Tx): Promise<void> {
  await tx.updateTable('users').set({ role: 'admin' }).where('role', '=', 'admin').execute()
}

/** How many other admins are active. */
export function countOtherActiveAdmins(tx: Tx, id: string): Promise<number> {
  return countOf(
    tx
      .selectFrom('users')
      .where('role', '=', 'admin')
      .where('suspended_at', 'is', null)
      .where('id', '<>', id),
  )
}

export type SessionRow = Selectable<Schema['sessions']>

export interface OpenSession {
  session: SessionRow
  user: UserRow
}

/**
 * A session that has not expired at `now` and whose account is not suspended, and its user. Throws `TamperedRow` when one of them was
 * changed outside of the service.
 */
export async function findOpenSession(
  db: Queries,
  keys: AppKeys,
  by: { tokenHash: string } | { userId: string; id: string },
  now: number,
): Promise<OpenSession | null> {
  const isSession =
    'id' in by
      ? sql`sessions.id = ${by.id} and sessions.user_id = ${by.userId}`
      : sql`sessions.token_hash = ${by.tokenHash}`
  const { rows } = await sql<SessionRow>`
    select sessions.*, ${USER.columns}
    from sessions join users on users.id = sessions.user_id
    where ${isSession} and sessions.expires_at > ${now} and users.suspended_at is null`.execute(db)
  if (!rows[0]) return null
  const { row: user, rest: session } = USER.split(rows[0])
  requireAuthentic(keys, 'sessions', session)
  requireAuthentic(keys, 'users', user)
  return { session, user }
}

const USER = joinedRow<UserRow>('users', [
  'id',
  'email',
  'password_hash',
  'role',
  'display_name',
  'suspended_at',
  'created_at',
  'email_verified_at',
  'row_digest',
])

/** Records that a session was used at `now` (epoch ms), unless a later use is recorded. */
export async function setSessionUsed(tx: Tx, id: string, now: number): Promise<void> {
  await tx
    .updateTable('sessions')
    .set({ last_used_at: now })
    .where('id', '=', id)
    .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<', now)]))
    .execute()
}

/** Makes a session fresh until `until` (epoch ms). */
export async function setSessionFresh(tx: Tx, userId: string, id: string, until: number): Promise<void> {
  await updateRows(tx, 'sessions', { id, user_id: userId }, { fresh_until: until })
}

/** Lets a session do everything that its user may. */
export async function liftSetupOnly(tx: Tx, userId: string, id: string): Promise<void> {
  await updateRows(tx, 'sessions', { id, user_id: userId }, { setup_only: 0 })
}

/** Ends the sessions that meet the condition; returns how many. */
export async function deleteSessions(tx: Tx, condition: Condition<'sessions'>): Promise<number> {
  return (await deleteRows(tx, 'sessions', condition)).length
}

/** A user's sessions that have not expired at `now`, newest first, before the id `before`. */
export function findOpenSessions(
  db: Queries,
  userId: string,
  { now, before, limit }: { now: number; before: string | null; limit: number },
): Promise<SessionRow[]> {
  return db
    .selectFrom('sessions')
    .selectAll()
    .where('user_id', '=', userId)
    .where('expires_at', '>', now)
    .$if(before !== null, (query) => query.where('id', '<', before ?? ''))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Whether an account has logged in from an address since `since` (epoch ms). */
export async function hasLoggedInFrom(
  db: Queries,
  userId: string,
  addressHash: string,
  since: number,
): Promise<boolean> {
  const row = await db
    .selectFrom('login_addresses')
    .select('user_id')
    .where('user_id', '=', userId)
    .where('address_hash', '=', addressHash)
    .where('used_at', '>=', since)
    .executeTakeFirst()
  return row !== undefined
}

export async function upsertLoginAddress(
  tx: Tx,
  row: { user_id: string; address_hash: string; used_at: number },
): Promise<void> {
  await tx
    .insertInto('login_addresses')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['user_id', 'address_hash']).doUpdateSet({ used_at: row.used_at }),
    )
    .execute()
}

/** Keeps an account's `most` latest addresses of those used since `since` (epoch ms), and deletes the others. */
export async function pruneLoginAddresses(
  tx: Tx,
  userId: string,
  since: number,
  most: number,
): Promise<void> {
  const latest = tx
    .selectFrom('login_addresses')
    .select('address_hash')
    .where('user_id', '=', userId)
    .where('used_at', '>=', since)
    .orderBy('used_at', 'desc')
    .orderBy('address_hash')
    .limit(most)
  await tx
    .deleteFrom('login_addresses')
    .where('user_id', '=', userId)
    .where('address_hash', 'not in', latest)
    .execute()
}

/** All accounts of a kind that these users ever gave, oldest first. */
export async function accountsOf<T extends 'payout_destinations' | 'billing_accounts'>(
  db: Queries,
  table: T,
  userIds: readonly string[],
): Promise<Selectable<Schema[T]>[]> {
  if (userIds.length === 0) return []
  const { rows } = await sql<Selectable<Schema[T]>>`
    select * from ${sql.table(table)} where user_id in (${sql.join(userIds)}) order by created_at, id`.execute(
    db,
  )
  return rows
}

/** Makes this the valid token of its user and purpose. */
export async function replaceToken(tx: Tx, row: NewRow<'account_tokens'>): Promise<void> {
  await deleteTokens(tx, row.user_id, row.purpose)
  await insertRows(tx, 'account_tokens', [row])
}

/** The user of a token that is valid at `now` (epoch ms). Throws `TamperedRow` and `UnknownKeyError`. */
export async function findTokenOwner(
  db: Queries,
  keys: AppKeys,
  purpose: TokenPurpose,
  tokenHash: string,
  now: number,
): Promise<string | null> {
  const row = await db
    .selectFrom('account_tokens')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .where('purpose', '=', purpose)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  if (row) requireAuthentic(keys, 'account_tokens', row)
  return row?.user_id ?? null
}

/**
 * Deletes a token that is valid at `now` and returns its user; `null` if there is none. Of concurrent calls one succeeds. Throws
 * `TamperedRow` and `UnknownKeyError`.
 */
export async function takeToken(
  tx: Tx,
  purpose: TokenPurpose,
  tokenHash: string,
  now: number,
): Promise<string | null> {
  const valid = sql`token_hash = ${tokenHash} and purpose = ${purpose} and expires_at > ${now}`
  const [row] = await takeRows(tx, 'account_tokens', valid)
  return row?.user_id ?? null
}

/** Ends the links that were mailed to an account; of one purpose, if given. */
export async function deleteTokens(tx: Tx, userId: string, purpose?: TokenPurpose): Promise<void> {
  await deleteRows(tx, 'account_tokens', { user_id: userId, ...(purpose && { purpose }) })
}

export async function setEmailVerified(tx: Tx, userId: string, at: number): Promise<void> {
  await updateRows(tx, 'users', { id: userId, email_verified_at: null }, { email_verified_at: at })
}
