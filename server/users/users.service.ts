import { z } from 'zod'
import type { Role } from '../../shared/schemas/common.ts'
import { displayName, emailAddress, newPassword } from '../../shared/schemas/users.ts'
import { OPERATOR, recordAudit } from '../flags/audit.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import { type PageRequest, pageById } from '../platform/api/page.ts'
import { invalidInput } from '../platform/api/problem.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { requiresVerifiedEmail } from '../platform/config.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database/database.ts'
import { changeRow, insertRowsIfNew, lockRows, updateRows } from '../platform/database/protected-rows.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import type { AccountWords } from './password-strength.rule.ts'
import { hashNewPassword } from './passwords.ts'
import { endApiKeys, endSession, endSessions } from './sessions.service.ts'
import {
  countOtherActiveAdmins,
  deleteTokens,
  findPeople,
  findUserByEmail,
  findUserById,
  findUsers,
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
export function listUsers({ database }: Platform, filter: UserFilter & PageRequest) {
  return pageById(filter, (page) => findUsers(database.reader, filter, page))
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
  const row = {
    id: platform.ids.next(),
    email: user.email,
    password_hash: user.passwordHash,
    role: user.role,
    display_name: user.displayName,
    suspended_at: null,
    created_at: platform.clock.now(),
    email_verified_at: null,
  }
  const [created] = await insertRowsIfNew(tx, 'users', [row])
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
  const given = parsed(NEW_ADMIN, { email, password, display_name: name })
  const words = { email: given.email, displayName: given.display_name }
  const passwordHash = await hashNewPassword('password', given.password, words)
  return platform.database.transaction(async (tx) => {
    const row = await createUser(platform, tx, { ...words, passwordHash, role: 'admin' })
    await recordOperation(platform, tx, 'user.create_admin', row.id, { email: row.email })
    return row
  })
}

function parsed<Schema extends z.ZodType>(schema: Schema, given: unknown): z.output<Schema> {
  const result = schema.safeParse(given)
  if (!result.success) throw invalidInput(result.error)
  return result.data
}

/** Sets a user's password (by id or e-mail) and ends their sessions and API keys, from the command line only. Refuses with `not_found` and `validation_failed`. */
export async function setPassword(platform: Platform, idOrEmail: string, password: string): Promise<void> {
  const given = parsed(z.strictObject({ password: newPassword }), { password })
  const user = await findUser(platform, idOrEmail)
  const hashed = await hashNewPassword('password', given.password, wordsOf(user))
  await platform.database.transaction(async (tx) => {
    await updateRows(tx, 'users', { id: user.id }, { password_hash: hashed })
    await passwordChanged(platform, tx, user.id, 'operator')
  })
}

const CHANGED_BY = {
  owner: 'user.change_password',
  reset: 'user.reset_password',
  operator: 'user.set_password',
} as const

/**
 * Call in the transaction that sets a password: ends mailed links and sessions, except one if given, and API keys unless the owner changed
 * it; notifies the owner and records it.
 */
export async function passwordChanged(
  platform: Platform,
  tx: Tx,
  userId: string,
  by: keyof typeof CHANGED_BY,
  exceptSession?: string,
): Promise<void> {
  await deleteTokens(tx, userId, by === 'reset' ? undefined : 'password_reset')
  await endSessions(tx, userId, exceptSession)
  const ended = by === 'owner' ? {} : { api_keys_ended: await endApiKeys(tx, userId) }
  const facts = { at: platform.clock.now(), by }
  await sendMail(platform, tx, { userId, kind: 'password_changed', facts })
  await recordAudit(platform, tx, {
    actor: by === 'operator' ? OPERATOR : userId,
    action: CHANGED_BY[by],
    subjectType: 'user',
    subjectId: userId,
    after: { sessions_ended: exceptSession === undefined ? 'all' : 'all others', ...ended },
  })
}

/** Ends one session of a user, or all, from the command line only; returns how many. Refuses with `not_found`. */
export function endSessionsOf(platform: Platform, userId: string, sessionId?: string): Promise<number> {
  return platform.database.transaction(async (tx) => {
    if (sessionId !== undefined) await endSession(tx, userId, sessionId)
    const sessions_ended = sessionId === undefined ? await endSessions(tx, userId) : 1
    const after = { sessions_ended, ...(sessionId !== undefined && { session_id: sessionId }) }
    await recordOperation(platform, tx, 'user.end_sessions', userId, after)
    return sessions_ended
  })
}

function recordOperation(
  platform: Platform,
  tx: Tx,
  action: string,
  subjectId: string,
  after: Record<string, unknown>,
) {
  return recordAudit(platform, tx, { actor: OPERATOR, action, subjectType: 'user', subjectId, after })
}

interface SuspensionChange {
  userId: string
  /** The admin's user id, or `OPERATOR`. */
  actor: string
  reason: string | null
}

/**
 * Suspends a user and ends all their sessions and API keys; a suspended one stays as is. Refuses with `not_found`, and with
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
    const isUnchanged = (user: UserRow) => (user.suspended_at === null) === (suspendedAt === null)
    const known = await userRow(tx, userId)
    // The admins are locked before the user, in the same order by every suspension.
    if (!isUnchanged(known) && suspendedAt !== null && known.role === 'admin')
      await refuseLastAdmin(tx, userId)
    const [user = known] = await lockRows(tx, 'users', { id: userId })
    if (isUnchanged(user)) return user
    await changeRow(tx, 'users', user, { suspended_at: suspendedAt })
    let ended = {}
    if (suspendedAt !== null) {
      await endSessions(tx, userId)
      ended = { api_keys_ended: await endApiKeys(tx, userId) }
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
      after: { suspended: suspendedAt !== null, ...ended },
    })
    afterCommit(tx, () => {
      // Links, offers and webhooks depend on it.
      platform.caches.drop()
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

/** Locks an account until the transaction ends, if its password has not changed and it is not suspended; returns whether it did. */
export async function lockActiveUser(tx: Tx, { id, password_hash }: UserRow): Promise<boolean> {
  return (await lockRows(tx, 'users', { id, password_hash, suspended_at: null })).length > 0
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

interface Quota {
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
  throw new Refusal('not_found', 'User not found.')
}

export async function renameUser(tx: Tx, userId: string, displayName: string): Promise<void> {
  await updateRows(tx, 'users', { id: userId }, { display_name: displayName })
}
