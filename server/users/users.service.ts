import { z } from 'zod'
import type { Role } from '../../shared/schemas/common.ts'
import { displayName, emailAddress, newPassword } from '../../shared/schemas/users.ts'
import { OPERATOR, recordAudit } from '../moderation/audit.service.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database.ts'
import { isId } from '../platform/ids.ts'
import { decodeCursor, encodeCursor, mapPage, type Page, pageOf } from '../platform/page.ts'
import type { Platform } from '../platform/platform.ts'
import { invalidInput } from '../platform/problem.ts'
import type { Actor } from '../platform/procedure.ts'
import { Refusal } from '../platform/refusal.ts'
import { hashNewPassword } from './passwords.ts'
import { hashOfToken } from './session-token.ts'
import { deleteSessions, findSessionHolder, isSessionOpen } from './sessions.store.ts'
import {
  countOtherActiveAdmins,
  findPeople,
  findUserByEmail,
  findUserById,
  findUsers,
  holdAdmins,
  insertUser,
  setPasswordHash,
  setSuspension,
  type UserFilter,
  type UserRow,
} from './users.store.ts'

/** An account as other parts of the service see it; times in epoch ms. */
export interface UserRecord {
  id: string
  email: string
  role: Role
  displayName: string
  suspendedAt: number | null
  createdAt: number
}

export function userRecordOf(row: Omit<UserRow, 'password_hash'>): UserRecord {
  return {
    id: row.id,
    email: row.email,
    role: row.role,
    displayName: row.display_name,
    suspendedAt: row.suspended_at,
    createdAt: row.created_at,
  }
}

/** A user by id or e-mail. Refuses with `not_found`. */
export async function findUser(platform: Pick<Platform, 'database'>, idOrEmail: string): Promise<UserRecord> {
  const { reader } = platform.database
  const text = idOrEmail.trim().toLowerCase()
  const row = isId(text) ? await findUserById(reader, text) : await findUserByEmail(reader, text)
  if (!row) throw new Refusal('not_found', `There is no user ${idOrEmail}.`)
  return userRecordOf(row)
}

/** Newest first. Refuses a cursor that is not this list's with `validation_failed`. */
export async function listUsers(
  platform: Platform,
  query: UserFilter & { limit: number; cursor?: string },
): Promise<Page<UserRecord>> {
  const before = decodeCursor(query.cursor, z.string().refine(isId))
  const rows = await findUsers(platform.database.reader, query, before, query.limit + 1)
  return mapPage(
    pageOf(rows, query.limit, (last) => encodeCursor(last.id)),
    userRecordOf,
  )
}

export interface NewUser {
  email: string
  passwordHash: string
  role: Role
  displayName: string
}

/** Makes an account from checked input. Refuses with `email_taken`. */
export async function createUser(platform: Platform, tx: Tx, user: NewUser): Promise<UserRow> {
  const row: UserRow = {
    id: platform.ids.next(),
    email: user.email,
    password_hash: user.passwordHash,
    role: user.role,
    display_name: user.displayName,
    suspended_at: null,
    created_at: platform.clock.now(),
  }
  if (await insertUser(tx, row)) return row
  throw new Refusal('email_taken', 'There is an account with this e-mail already.')
}

const NEW_ADMIN = z.strictObject({ email: emailAddress, password: newPassword, display_name: displayName })

/** Makes an admin, from the command line only. Refuses with `validation_failed` and `email_taken`. */
export async function createAdmin(
  platform: Platform,
  email: string,
  password: string,
  name: string,
): Promise<UserRecord> {
  const given = NEW_ADMIN.safeParse({ email, password, display_name: name })
  if (!given.success) throw invalidInput(given.error)
  const admin: NewUser = {
    email: given.data.email,
    passwordHash: await hashNewPassword('password', given.data.password, {
      email: given.data.email,
      displayName: given.data.display_name,
    }),
    role: 'admin',
    displayName: given.data.display_name,
  }
  return platform.database.transaction(async (tx) => {
    const row = await createUser(platform, tx, admin)
    await noteOperation(platform, tx, 'user.create_admin', row.id, { email: row.email })
    return userRecordOf(row)
  })
}

/**
 * Gives a user (by id or e-mail) another password and ends all sessions, from the command line only. Refuses with
 * `not_found` and `validation_failed`.
 */
export async function setPassword(platform: Platform, idOrEmail: string, password: string): Promise<void> {
  const given = z.strictObject({ password: newPassword }).safeParse({ password })
  if (!given.success) throw invalidInput(given.error)
  const user = await findUser(platform, idOrEmail)
  const { id } = user
  const hashed = await hashNewPassword('password', given.data.password, user)
  await platform.database.transaction(async (tx) => {
    await setPasswordHash(tx, id, null, hashed)
    await deleteSessions(tx, id, null)
    await noteOperation(platform, tx, 'user.set_password', id, { sessions_ended: 'all' })
  })
}

function noteOperation(
  platform: Platform,
  tx: Tx,
  action: string,
  userId: string,
  after: Record<string, unknown> | null,
) {
  return recordAudit(platform, tx, {
    actor: OPERATOR,
    action,
    subjectType: 'user',
    subjectId: userId,
    reason: null,
    before: null,
    after,
  })
}

/** Who a bearer token belongs to; `null` when it is malformed, unknown, expired, ended, or its user is suspended. */
export async function authenticate(platform: Platform, token: string): Promise<Actor | null> {
  const hash = hashOfToken(token)
  if (hash === null) return null
  const holder = await findSessionHolder(platform.database.reader, hash, platform.clock.now())
  return holder ? { userId: holder.user_id, role: holder.role, sessionId: holder.session_id } : null
}

/** Whether a caller who was authenticated some time ago still would be: for what stays open for long. */
export function isStillIn(platform: Platform, actor: Actor): Promise<boolean> {
  return isSessionOpen(platform.database.reader, actor.userId, actor.sessionId, platform.clock.now())
}

export interface SuspensionChange {
  userId: string
  /** The admin's user id, or `OPERATOR`. */
  actor: string
  reason: string | null
}

/**
 * Suspends a user and ends all their sessions; a suspended one stays as is. Refuses with `not_found`, and with
 * `conflict` for the last active admin.
 */
export function suspendUser(platform: Platform, change: SuspensionChange): Promise<UserRecord> {
  return moveSuspension(platform, change, platform.clock.now())
}

/** Lets a suspended user in again (with a new log-in); an active one stays as is. Refuses with `not_found`. */
export function reinstateUser(platform: Platform, change: SuspensionChange): Promise<UserRecord> {
  return moveSuspension(platform, change, null)
}

function moveSuspension(
  platform: Platform,
  change: SuspensionChange,
  suspendedAt: number | null,
): Promise<UserRecord> {
  const { userId, actor, reason } = change
  return platform.database.transaction(async (tx) => {
    const user = await findUserById(tx, userId)
    if (!user) throw new Refusal('not_found', 'There is no such user.')
    // Asked for again: nothing changes, whoever is left.
    if ((user.suspended_at === null) === (suspendedAt === null)) return userRecordOf(user)
    if (suspendedAt !== null && user.role === 'admin') await refuseLastAdmin(tx, userId)
    if (!(await setSuspension(tx, userId, suspendedAt))) {
      return userRecordOf({ ...user, suspended_at: suspendedAt })
    }
    if (suspendedAt !== null) await deleteSessions(tx, userId, null)
    await recordAudit(platform, tx, {
      actor,
      action: suspendedAt === null ? 'user.reinstate' : 'user.suspend',
      subjectType: 'user',
      subjectId: userId,
      reason,
      before: { suspended: suspendedAt === null },
      after: { suspended: suspendedAt !== null },
    })
    afterCommit(tx, () => {
      platform.caches.clear('slug')
      platform.caches.clear('store')
      platform.caches.clear('offers')
    })
    return userRecordOf({ ...user, suspended_at: suspendedAt })
  })
}

async function refuseLastAdmin(tx: Tx, userId: string): Promise<void> {
  await holdAdmins(tx)
  if ((await countOtherActiveAdmins(tx, userId)) > 0) return
  throw new Refusal('conflict', 'The last active admin cannot be suspended.')
}

/** Which of these users (some hundreds at most, as everywhere below) are suspended. */
export async function isSuspended(db: Queries, userIds: readonly string[]): Promise<Set<string>> {
  const rows = await findPeople(db, userIds)
  return new Set(rows.filter((row) => row.suspended_at !== null).map((row) => row.id))
}

/** E-mail addresses by user id. */
export async function emailsOf(db: Queries, userIds: readonly string[]): Promise<Map<string, string>> {
  return new Map((await findPeople(db, userIds)).map((row) => [row.id, row.email]))
}

/** Display names by user id. */
export async function displayNamesOf(db: Queries, userIds: readonly string[]): Promise<Map<string, string>> {
  return new Map((await findPeople(db, userIds)).map((row) => [row.id, row.display_name]))
}

export interface Contact {
  email: string
  displayName: string
}

/** What the decision about a sale asks of people: who is suspended, and e-mail addresses by user id. */
export async function standingOf(
  db: Queries,
  userIds: readonly string[],
): Promise<{ suspended: Set<string>; emails: Map<string, string> }> {
  const rows = await findPeople(db, [...new Set(userIds)])
  return {
    suspended: new Set(rows.filter((row) => row.suspended_at !== null).map((row) => row.id)),
    emails: new Map(rows.map((row) => [row.id, row.email])),
  }
}

/** E-mail addresses and display names by user id. */
export async function contactsOf(db: Queries, userIds: readonly string[]): Promise<Map<string, Contact>> {
  const rows = await findPeople(db, userIds)
  return new Map(rows.map((row) => [row.id, { email: row.email, displayName: row.display_name }]))
}
