import { recordAudit } from '../moderation/audit.service.ts'
import type { Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { Actor } from '../platform/procedure.ts'
import { Refusal } from '../platform/refusal.ts'
import { factsOf, isRightPassword, rememberLoginAddress } from './password-attempts.service.ts'
import { hashNewPassword } from './passwords.ts'
import { type Profile, profileOf } from './profile.service.ts'
import { createToken } from './session-token.ts'
import { deleteExpiredSessions, deleteSession, deleteSessions, insertSession } from './sessions.store.ts'
import { createUser, userRecordOf } from './users.service.ts'
import { findUserByEmail, findUserById, holdActiveUser, setPasswordHash } from './users.store.ts'

const SESSION_MS = 30 * 24 * 60 * 60 * 1000

export interface OpenedSession {
  profile: Profile
  /** The bearer token: this is the only time that it is known. */
  token: string
  /** Epoch ms. */
  expiresAt: number
}

export interface Registration {
  email: string
  password: string
  role: 'merchant' | 'creator'
  displayName: string
  /** The client's network address; missing where no client asks. */
  address?: string
}

/** Makes an account and logs it in. Refuses with `email_taken` and `validation_failed` (a weak password). */
export async function register(platform: Platform, given: Registration): Promise<OpenedSession> {
  const passwordHash = await hashNewPassword('password', given.password, given)
  const opened = await platform.database.transaction(async (tx) => {
    const user = await createUser(platform, tx, {
      email: given.email,
      passwordHash,
      role: given.role,
      displayName: given.displayName,
    })
    await rememberLoginAddress(platform, tx, user.id, given.address ?? '')
    return { userId: user.id, ...(await openSession(platform, tx, user.id)) }
  })
  return withProfile(platform, opened)
}

/**
 * Logs a user in. An unknown e-mail and a wrong password are refused alike, in like time, with `invalid_credentials`;
 * only the right password shows a suspension (`account_suspended`). Too many wrong ones: `rate_limited`. `address` is the
 * client's network address.
 */
export async function login(
  platform: Platform,
  email: string,
  password: string,
  address = '',
): Promise<OpenedSession> {
  const user = await findUserByEmail(platform.database.reader, email)
  const matches = await isRightPassword(platform, { email, user, password, address })
  if (!user || !matches) throw wrongCredentials()
  if (user.suspended_at !== null) {
    platform.log.warn({ event: 'suspended_login', ...factsOf({ user, address }) }, 'log-in while suspended')
    throw new Refusal('account_suspended', 'This account is suspended.')
  }
  const opened = await platform.database.transaction(async (tx) => {
    if (!(await holdActiveUser(tx, user.id, user.password_hash))) throw wrongCredentials()
    await deleteExpiredSessions(tx, user.id, platform.clock.now())
    await rememberLoginAddress(platform, tx, user.id, address)
    return { userId: user.id, ...(await openSession(platform, tx, user.id)) }
  })
  return withProfile(platform, opened)
}

function wrongCredentials(): Refusal {
  return new Refusal('invalid_credentials', 'The e-mail or the password is wrong.')
}

async function openSession(platform: Platform, tx: Tx, userId: string) {
  const { token, hash } = createToken()
  const now = platform.clock.now()
  const expiresAt = now + SESSION_MS
  await insertSession(tx, {
    id: platform.ids.next(),
    user_id: userId,
    token_hash: hash,
    created_at: now,
    expires_at: expiresAt,
  })
  return { token, expiresAt }
}

async function withProfile(
  platform: Platform,
  opened: { userId: string; token: string; expiresAt: number },
): Promise<OpenedSession> {
  const profile = await profileOf(platform, opened.userId)
  return { profile, token: opened.token, expiresAt: opened.expiresAt }
}

/** Ends the session that asks. */
export async function logout(platform: Platform, actor: Actor): Promise<void> {
  await platform.database.transaction((tx) => deleteSession(tx, actor.userId, actor.sessionId))
}

/**
 * Gives the caller another password and ends every other session. Refuses with `invalid_credentials`, `rate_limited`, with
 * `validation_failed` a weak password, and with `conflict` when another change was quicker.
 */
export async function changePassword(
  platform: Platform,
  actor: Actor,
  change: { currentPassword: string; newPassword: string; address?: string },
): Promise<void> {
  const user = await findUserById(platform.database.reader, actor.userId)
  const { currentPassword: password, address = '' } = change
  const matches = user && (await isRightPassword(platform, { email: user.email, user, password, address }))
  if (!user || !matches) throw new Refusal('invalid_credentials', 'The current password is wrong.')
  const hashed = await hashNewPassword('new_password', change.newPassword, userRecordOf(user))
  await platform.database.transaction(async (tx) => {
    if (!(await setPasswordHash(tx, user.id, user.password_hash, hashed))) {
      throw new Refusal('conflict', 'The password was changed meanwhile.')
    }
    await deleteSessions(tx, user.id, actor.sessionId)
    await recordAudit(platform, tx, {
      actor: user.id,
      action: 'user.change_password',
      subjectType: 'user',
      subjectId: user.id,
      reason: null,
      before: null,
      after: { sessions_ended: 'all others' },
    })
  })
}
