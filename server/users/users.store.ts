import { type Selectable, sql } from 'kysely'
import type { Role } from '../../shared/schemas/common.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { countOf, newestFirst } from '../platform/database/bulk-values.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import {
  deleteRows,
  joinedRow,
  type RowOf,
  requireAuthentic,
  takeRows,
} from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { TokenPurpose } from './user.entity.ts'

export type UserRow = Selectable<Schema['users']>
export type DestinationRow = Selectable<Schema['payout_destinations']>
export type BillingAccountRow = Selectable<Schema['billing_accounts']>
export type SecondFactorRow = Selectable<Schema['second_factors']>
export type SessionRow = Selectable<Schema['sessions']>
export type ApiKeyRow = Selectable<Schema['api_keys']>

export function findUserById(db: Queries, id: string) {
  return db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()
}

export function findUserByEmail(db: Queries, email: string) {
  return db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst()
}

export type PersonRow = Pick<UserRow, 'id' | 'email' | 'display_name' | 'suspended_at'>

export async function findPeople(db: Queries, ids: readonly string[]): Promise<PersonRow[]> {
  if (ids.length === 0) return []
  const people = db.selectFrom('users').select(['id', 'email', 'display_name', 'suspended_at'])
  return people.where('id', 'in', ids).execute()
}

export interface UserFilter {
  /** A part of the e-mail address or the name, in any case. */
  q?: string | undefined
  role?: Role | undefined
  suspended?: boolean | undefined
}

export function findUsers(
  db: Queries,
  { q, role, suspended }: UserFilter,
  page: { before: string | null; limit: number },
) {
  let query = db.selectFrom('users').selectAll()
  if (q !== undefined) {
    const pattern = `%${q.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
    query = query.where(
      sql<boolean>`(email like ${pattern} escape '\\' or lower(display_name) like ${pattern} escape '\\')`,
    )
  }
  if (role) query = query.where('role', '=', role)
  if (suspended !== undefined) query = query.where('suspended_at', suspended ? 'is not' : 'is', null)
  return newestFirst(query, page)
}

/** Locks a user's row until the transaction ends. */
export async function lockUser(tx: Tx, id: string): Promise<void> {
  const unchanged = tx.updateTable('users').set((eb) => ({ role: eb.ref('role') }))
  await unchanged.where('id', '=', id).execute()
}

/** Locks all admins' rows until the transaction ends, so that two admins cannot suspend each other at the same time. */
export async function lockAdmins(tx: Tx): Promise<void> {
  await tx.updateTable('users').set({ role: 'admin' }).where('role', '=', 'admin').execute()
}

export function countOtherActiveAdmins(tx: Tx, id: string) {
  const active = tx.selectFrom('users').where('role', '=', 'admin').where('suspended_at', 'is', null)
  return countOf(active.where('id', '<>', id))
}

/** What a bearer token can belong to. */
export type Credential = 'sessions' | 'api_keys'

/**
 * A session or API key that has not expired at `now` and whose account is not suspended, and its user. Throws `TamperedRow` when one of
 * them was changed outside of the service.
 */
export async function findCredential<T extends Credential>(
  db: Queries,
  keys: AppKeys,
  table: T,
  by: { tokenHash: string } | { userId: string; id: string },
  now: number,
) {
  const given = sql.table(table)
  const isGiven =
    'id' in by ? sql`${given}.id = ${by.id} and user_id = ${by.userId}` : sql`token_hash = ${by.tokenHash}`
  const { rows } = await sql<RowOf<T>>`
    select ${given}.*, ${USER.columns}
    from ${given} join users on users.id = user_id
    where ${isGiven} and (expires_at is null or expires_at > ${now}) and users.suspended_at is null`.execute(
    db,
  )
  if (!rows[0]) return null
  const { row: user, rest: credential } = USER.split(rows[0])
  requireAuthentic(keys, table, credential)
  requireAuthentic(keys, 'users', user)
  return { credential, user }
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

/** Records that a session or API key was used at `now` (epoch ms), unless a later use is recorded. */
export async function setUsed(tx: Tx, table: Credential, id: string, now: number): Promise<void> {
  await sql`update ${sql.table(table)} set last_used_at = ${now}
    where id = ${id} and (last_used_at is null or last_used_at < ${now})`.execute(tx)
}

/** A user's sessions that have not expired at `now`. */
export function findOpenSessions(
  db: Queries,
  userId: string,
  { now, ...page }: { now: number; before: string | null; limit: number },
) {
  const open = db.selectFrom('sessions').selectAll().where('user_id', '=', userId)
  return newestFirst(open.where('expires_at', '>', now), page)
}

/** A user's API keys that have not expired at `now`. */
export function findApiKeys(
  db: Queries,
  userId: string,
  { now, ...page }: { now: number; before: string | null; limit: number },
) {
  const own = db.selectFrom('api_keys').selectAll().where('user_id', '=', userId)
  const valid = own.where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
  return newestFirst(valid, page)
}

/** A user's API keys, expired ones too. */
export function countApiKeys(db: Queries, userId: string) {
  return countOf(db.selectFrom('api_keys').where('user_id', '=', userId))
}

/** Whether an account has logged in from an address since `since` (epoch ms). */
export async function hasLoggedInFrom(db: Queries, userId: string, addressHash: string, since: number) {
  const row = await db
    .selectFrom('login_addresses')
    .select('user_id')
    .where('user_id', '=', userId)
    .where('address_hash', '=', addressHash)
    .where('used_at', '>=', since)
    .executeTakeFirst()
  return row !== undefined
}

/** Adds an address that an account was used from, and keeps the `most` latest of those used since `since` (epoch ms). */
export async function rememberAddress(
  tx: Tx,
  row: Selectable<Schema['login_addresses']>,
  { since, most }: { since: number; most: number },
): Promise<void> {
  const { user_id, used_at } = row
  await tx
    .insertInto('login_addresses')
    .values(row)
    .onConflict((conflict) => conflict.columns(['user_id', 'address_hash']).doUpdateSet({ used_at }))
    .execute()
  const latest = tx
    .selectFrom('login_addresses')
    .select('address_hash')
    .where('user_id', '=', user_id)
    .where('used_at', '>=', since)
    .orderBy('used_at', 'desc')
    .orderBy('address_hash')
    .limit(most)
  const others = tx.deleteFrom('login_addresses').where('user_id', '=', user_id)
  await others.where('address_hash', 'not in', latest).execute()
}

/** All accounts of a kind that these users ever gave, oldest first. */
export async function accountsOf<T extends 'payout_destinations' | 'billing_accounts'>(
  db: Queries,
  table: T,
  userIds: readonly string[],
) {
  if (userIds.length === 0) return []
  const { rows } = await sql<Selectable<Schema[T]>>`
    select * from ${sql.table(table)} where user_id in (${sql.join(userIds)}) order by created_at, id`.execute(
    db,
  )
  return rows
}

/** Holds for a token that is valid at `now` (epoch ms). */
const isValid = (purpose: TokenPurpose, tokenHash: string, now: number) =>
  sql<boolean>`token_hash = ${tokenHash} and purpose = ${purpose} and expires_at > ${now}`

/** The user of a valid token; `null` if there is none. Throws `TamperedRow` and `UnknownKeyError`. */
export async function findTokenOwner(db: Queries, keys: AppKeys, ...token: Parameters<typeof isValid>) {
  const tokens = db.selectFrom('account_tokens').selectAll()
  const row = await tokens.where(isValid(...token)).executeTakeFirst()
  if (row) requireAuthentic(keys, 'account_tokens', row)
  return row?.user_id ?? null
}

/**
 * Deletes a valid token and returns its user; `null` if there is none. Of concurrent calls one succeeds. Throws `TamperedRow` and
 * `UnknownKeyError`.
 */
export async function takeToken(tx: Tx, ...token: Parameters<typeof isValid>) {
  const [row] = await takeRows(tx, 'account_tokens', isValid(...token))
  return row?.user_id ?? null
}

/** Ends the links that were mailed to an account; of one purpose, if given. */
export async function deleteTokens(tx: Tx, userId: string, purpose?: TokenPurpose): Promise<void> {
  await deleteRows(tx, 'account_tokens', { user_id: userId, ...(purpose && { purpose }) })
}

/** Throws `TamperedRow` and `UnknownKeyError`. */
export async function findSecondFactor(db: Queries, keys: AppKeys, userId: string) {
  const found = db.selectFrom('second_factors').selectAll().where('user_id', '=', userId)
  const row = await found.executeTakeFirst()
  if (row) requireAuthentic(keys, 'second_factors', row)
  return row
}

/** How many active admins have no confirmed second factor. */
export function countAdminsWithoutSecondFactor(db: Queries) {
  return countOf(
    db
      .selectFrom('users')
      .leftJoin('second_factors', 'second_factors.user_id', 'users.id')
      .where('users.role', '=', 'admin')
      .where('users.suspended_at', 'is', null)
      .where('second_factors.confirmed_at', 'is', null),
  )
}

/** Deletes a user's second factor and recovery codes; returns whether there was a confirmed factor. */
export async function deleteSecondFactor(tx: Tx, userId: string): Promise<boolean> {
  await deleteRows(tx, 'recovery_codes', { user_id: userId })
  const [deleted] = await deleteRows(tx, 'second_factors', { user_id: userId })
  return deleted !== undefined && deleted.confirmed_at !== null
}

export function countRecoveryCodes(db: Queries, userId: string) {
  return countOf(db.selectFrom('recovery_codes').where('user_id', '=', userId))
}
