import { sendMail } from '../mail/mail.service.ts'
import { recordAudit } from '../moderation/audit.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Tx } from '../platform/database/database.ts'
import { entities, LOCK } from '../platform/database/entities.ts'
import { addressPrefix } from '../platform/network/client-address.ts'
import type { Platform } from '../platform/platform.ts'
import {
  factsOf,
  isFamiliarAddress,
  isRightPassword,
  rememberLoginAddress,
} from './password-attempts.service.ts'
import { hashNewPassword } from './passwords.ts'
import { type Profile, profileOf } from './profile.service.ts'
import { endSessions, openSession } from './sessions.service.ts'
import { createUser, lockActiveUser, userRecordOf } from './users.service.ts'
import { findUserByEmail, findUserById } from './users.store.ts'

export interface OpenedSession {
  profile: Profile
  /** The bearer token, which is not stored. */
  token: string
  /** Epoch ms. */
  expiresAt: number
}

export interface Registration {
  email: string
  password: string
  role: 'merchant' | 'creator'
  displayName: string
  /** The client's network address, if there is a client. */
  address?: string
}

/** Creates an account and logs it in. Refuses with `email_taken`, and with `validation_failed` a weak password. */
export async function register(platform: Platform, given: Registration): Promise<OpenedSession> {
  const passwordHash = await hashNewPassword('password', given.password, given)
  const { email, role, displayName, address = '' } = given
  const { userId, ...opened } = await platform.database.transaction(async (tx) => {
    const user = await createUser(platform, tx, { email, passwordHash, role, displayName })
    await rememberLoginAddress(platform, tx, user.id, address)
    return { userId: user.id, ...(await openSession(platform, tx, user.id)) }
  })
  return { profile: await profileOf(platform, userId), ...opened }
}

/**
 * Logs a user in. An unknown e-mail and a wrong password are both refused with `invalid_credentials`, after the same time; a
 * suspension (`account_suspended`) is shown with the right password only. Too many wrong ones: `rate_limited`. `address`
 * is the client's network address.
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
    if (!(await lockActiveUser(tx, user))) throw wrongCredentials()
    await notifyOfNewAddress(platform, tx, user.id, address)
    await rememberLoginAddress(platform, tx, user.id, address)
    return openSession(platform, tx, user.id)
  })
  return { profile: await profileOf(platform, user.id), ...opened }
}

async function notifyOfNewAddress(
  platform: Platform,
  tx: Tx,
  userId: string,
  address: string,
): Promise<void> {
  if (await isFamiliarAddress(platform, tx, userId, address)) return
  const facts = { at: platform.clock.now(), network: addressPrefix(address) }
  await sendMail(platform, tx, { userId, kind: 'new_login', facts })
}

function wrongCredentials(): Refusal {
  return new Refusal('invalid_credentials', 'The e-mail or the password is wrong.')
}

/** Ends the caller's session. */
export async function logout(platform: Platform, actor: Actor): Promise<void> {
  await platform.database.transaction(async (tx) => {
    const { em, Session } = await entities(tx)
    await em.nativeDelete(Session, { id: actor.sessionId, user_id: actor.userId })
  })
}

/**
 * Changes the caller's password and ends their other sessions. Refuses with `invalid_credentials`, `rate_limited`,
 * `validation_failed` (a weak password) and `conflict` when the password changed at the same time.
 */
export async function changePassword(
  platform: Platform,
  actor: Actor,
  change: { currentPassword: string; newPassword: string; address?: string },
): Promise<void> {
  const known = await findUserById(platform.database.reader, actor.userId)
  const { currentPassword: password, address = '' } = change
  const matches =
    known && (await isRightPassword(platform, { email: known.email, user: known, password, address }))
  if (!known || !matches) throw new Refusal('invalid_credentials', 'The current password is wrong.')
  const hashed = await hashNewPassword('new_password', change.newPassword, userRecordOf(known))
  await platform.database.transaction(async (tx) => {
    const { em, User } = await entities(tx)
    const user = await em.findOne(User, { id: known.id, password_hash: known.password_hash }, LOCK)
    if (!user) throw new Refusal('conflict', 'The password was changed meanwhile.')
    user.password_hash = hashed
    await endSessions(tx, user.id, actor.sessionId)
    const facts = { at: platform.clock.now(), by: 'owner' } as const
    await sendMail(platform, tx, { userId: user.id, kind: 'password_changed', facts })
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
