import { z } from 'zod'
import type { Role } from '../../shared/schemas/common.ts'
import { displayName, emailAddress, newPassword } from '../../shared/schemas/users.ts'
import { OPERATOR, recordAudit } from '../flags/audit.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import { type Page, type PageRequest, pageById } from '../platform/api/page.ts'
import { invalidInput } from '../platform/api/problem.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { requiresVerifiedEmail } from '../platform/config.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database/database.ts'
import { changeRow, lockRows, type NewRow, updateRows } from '../platform/database/protected-rows.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import type { AccountWords } from './password-strength.rule.ts'
import { hashNewPassword } from './passwords.ts'
import { endSession, endSessions } from './sessions.service.ts'
import {
  countOtherActiveAdmins,
  deleteTokens,
  findPeople,
  findUserByEmail,
  findUserById,
  findUsers,
  insertUser,
  lockAdmins,
  lockUser,
  type PersonRow,
  type UserFilter,
  type UserRow,
} from './users.store.ts'

/** A user by id or e-mail. Refuses with `not_found`. */
export async function findUser(platform: Pick<Platform, 'database'>, idOrEmail: string): Promise<UserRow> {
  const { reader } = platform.database
  const text = idOrEmail.trim().toLowerCase()
  const row = isId(text) ? await findUserById(reader, text) : await findUserByEmail(reader, text)
  if (!row) throw new Refusal('not_found', `User ${idOrEmail} not found.`)
  return row
}

/** Newest first. Refuses a cursor that is not this list's with `validation_failed`. */
export function listUsers(
  platform: Platform,
  { limit, cursor, ...filter }: UserFilter & PageRequest,
): Promise<Page<UserRow>> {
  return pageById({ limit, cursor }, ({ before, limit }) =>
    findUsers(platform.database.reader, filter, before, limit),
  )
}

/** What a password of the account must not be. */
export function wordsOf({ email, display_name: displayName }: UserRow): AccountWords {
  return { email, displayName }
}

export interface NewUser {
  email: string
  passwordHash: string
  role: Role
  displayName: string
}

/** Creates an account from checked input. Refuses with `email_taken`. */
export async function createUser(platform: Platform, tx: Tx, user: NewUser): Promise<UserRow> {
  const now = platform.clock.now()
  const row: NewRow<'users'> = {
    id: platform.ids.next(),
    email: user.email,
    password_hash: user.passwordHash,
    role: user.role,
    display_name: user.displayName,
    suspended_at: null,
    created_at: now,
    email_verified_at: null,
  }
  const created = await insertUser(tx, row)
  if (created) return created
  throw new Refusal('email_taken', 'There is an account with this e-mail already.')
}

const NEW_ADMIN = z.strictObject({ email: emailAddress, password: newPassword, display_name: displayName })

/** Creates an admin, from the command line only. Refuses with `validation_failed` and `email_taken`. */
export async function createAdmin(
  platform: Platform,
  email: string,
  password: string,
  name: string,
): Promise<UserRow> {
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
    await recordOperation(platform, tx, 'user.create_admin', row.id, { email: row.email })
    return row
  })
}

/** Sets a user's password (by id or e-mail) and ends their sessions, from the command line only. Refuses with `not_found` and `validation_failed`. */
export async function setPassword(platform: Platform, idOrEmail: string, password: string): Promise<void> {
  const given = z.strictObject({ password: newPassword }).safeParse({ password })
  if (!given.success) throw invalidInput(given.error)
  const user = await findUser(platform, idOrEmail)
  const { id } = user
  const hashed = await hashNewPassword('password', given.data.password, wordsOf(user))
  await platform.database.transaction(async (tx) => {
    await updateRows(tx, 'users', { id }, { password_hash: hashed })
    await deleteTokens(tx, id, 'password_reset')
    await endSessions(tx, id)
    const facts = { at: platform.clock.now(), by: 'operator' } as const
    await sendMail(platform, tx, { userId: id, kind: 'password_changed', facts })
    await recordOperation(platform, tx, 'user.set_password', id, { sessions_ended: 'all' })
  })
}

/** Ends one session of a user, or all, from the command line only; returns how many. Refuses with `not_found`. */
export function endSessionsOf(platform: Platform, userId: string, sessionId?: string): Promise<number> {
  return platform.database.transaction(async (tx) => {
    const ended = sessionId === undefined ? await endSessions(tx, userId) : 1
    if (sessionId !== undefined) await endSession(tx, userId, sessionId)
    await recordOperation(platform, tx, 'user.end_sessions', userId, {
      sessions_ended: ended,
      ...(sessionId !== undefined && { session_id: sessionId }),
    })
    return ended
  })
}

function recordOperation(
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
    after,
  })
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
export function suspendUser(platform: Platform, change: SuspensionChange): Promise<UserRow> {
  return moveSuspension(platform, change, platform.clock.now())
}

/** Ends a suspension; the user must log in again. An active user stays as is. Refuses with `not_found`. */
export function reinstateUser(platform: Platform, change: SuspensionChange): Promise<UserRow> {
  return moveSuspension(platform, change, null)
}

function moveSuspension(
  platform: Platform,
  change: SuspensionChange,
  suspendedAt: number | null,
): Promise<UserRow> {
  const { userId, actor, reason } = change
  return platform.database.transaction(async (tx) => {
    const known = await userRow(tx, userId)
    const isUnchanged = (known.suspended_at === null) === (suspendedAt === null)
    // The admins are locked before the user, in the same order by every suspension.
    if (!isUnchanged && suspendedAt !== null && known.role === 'admin') await refuseLastAdmin(tx, userId)
    const [user] = await lockRows(tx, 'users', { id: userId })
    if (!user) throw userNotFound()
    if ((user.suspended_at === null) === (suspendedAt === null)) return user
    await changeRow(tx, 'users', user, { suspended_at: suspendedAt })
    if (suspendedAt !== null) {
      await endSessions(tx, userId)
      await deleteTokens(tx, userId, 'password_reset')
      await sendMail(platform, tx, { userId, kind: 'account_suspended', facts: { at: suspendedAt } })
    }
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
      // Links, offers and webhooks depend on it.
      platform.caches.clearAll()
      // So do the user's live streams.
      platform.topics.send(userTopic(userId))
    })
    return user
  })
}

async function refuseLastAdmin(tx: Tx, userId: string): Promise<void> {
  await lockAdmins(tx)
  if ((await countOtherActiveAdmins(tx, userId)) > 0) return
  throw new Refusal('conflict', 'The last active admin cannot be suspended.')
}

/** What others may know of these users, by id. At most some hundreds of ids, here and below. */
export async function peopleOf(
  db: Queries,
  userIds: readonly (string | null)[],
): Promise<Map<string, PersonRow>> {
  const ids = [...new Set(userIds)].filter((id) => id !== null)
  return new Map((await findPeople(db, ids)).map((row) => [row.id, row]))
}

/** Which of these users are suspended. */
export async function isSuspended(db: Queries, userIds: readonly string[]): Promise<Set<string>> {
  const people = [...(await peopleOf(db, userIds)).values()]
  return new Set(people.filter((row) => row.suspended_at !== null).map((row) => row.id))
}

/**
 * Locks an account until the transaction ends, if its password has not changed and it is not suspended; returns whether it did.
 */
export async function lockActiveUser(
  tx: Tx,
  user: Pick<UserRow, 'id' | 'password_hash'>,
): Promise<UserRow | null> {
  const { id, password_hash } = user
  return (await lockRows(tx, 'users', { id, password_hash, suspended_at: null }))[0] ?? null
}

/** Refuses with `email_not_verified` an account that needs a verified address and has none: see REQUIRE_VERIFIED_EMAIL. */
export async function requireVerifiedEmail(
  { config }: Pick<Platform, 'config'>,
  db: Queries,
  userId: string,
): Promise<void> {
  if (!requiresVerifiedEmail(config)) return
  const user = await findUserById(db, userId)
  if (!user || user.email_verified_at !== null) return
  throw new Refusal(
    'email_not_verified',
    'Verify your e-mail address first: open the link in the e-mail, or have it sent again.',
  )
}

export function userNotFound(): Refusal {
  return new Refusal('not_found', 'User not found.')
}

export interface Quota {
  /** How many objects an account may have. */
  most: number
  count: () => Promise<number>
  /** The refusal's text: what is full, and what to do about it. */
  detail: string
}

/**
 * Call in the transaction that adds an object to an account. It locks the account's row, so that concurrent calls are
 * counted one after the other. Refuses with `quota_exceeded`; existing objects beyond the quota stay.
 */
export async function checkQuota(tx: Tx, userId: string, { most, count, detail }: Quota): Promise<void> {
  await lockUser(tx, userId)
  if ((await count()) >= most) throw new Refusal('quota_exceeded', detail)
}

export { lockUser as lockAccount, type PersonRow, type UserRow } from './users.store.ts'

/** Refuses with `not_found`. */
export async function userRow(db: Queries, userId: string): Promise<UserRow> {
  const row = await findUserById(db, userId)
  if (row) return row
  throw userNotFound()
}

export async function renameUser(tx: Tx, userId: string, displayName: string): Promise<void> {
  await updateRows(tx, 'users', { id: userId }, { display_name: displayName })
}
