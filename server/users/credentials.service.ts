import { recordAudit } from '../flags/audit.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Tx } from '../platform/database/database.ts'
import { updateRows } from '../platform/database/protected-rows.ts'
import { addressPrefix } from '../platform/network/client-address.ts'
import type { Platform } from '../platform/platform.ts'
import { mailVerification } from './account-recovery.service.ts'
import { clientProgram } from './client-program.rule.ts'
import {
  checkCredentials,
  factsOf,
  isFamiliarAddress,
  isRightPassword,
  rememberLoginAddress,
} from './password-attempts.service.ts'
import { hashNewPassword } from './passwords.ts'
import {
  checkSecondFactor,
  hasSecondFactor,
  requireFreshSession,
  wrongCode,
} from './second-factor.service.ts'
import {
  endSession,
  endSessions,
  isProductionAdmin,
  markSessionFresh,
  type Origin,
  openSession,
} from './sessions.service.ts'
import { createUser, lockActiveUser, wordsOf } from './users.service.ts'
import { deleteSessions, deleteTokens, findUserByEmail, findUserById } from './users.store.ts'

export interface OpenedSession {
  userId: string
  /** The bearer token, which is not stored. */
  token: string
  /** Epoch ms. */
  expiresAt: number
  /** The session can only set up a second factor. */
  setupOnly?: boolean
}

export interface Registration extends Origin {
  email: string
  password: string
  role: 'merchant' | 'creator'
  displayName: string
}

/** Creates an account and logs it in. Refuses with `email_taken`, and with `validation_failed` a weak password. */
export async function register(platform: Platform, given: Registration): Promise<OpenedSession> {
  const passwordHash = await hashNewPassword('password', given.password, given)
  const { email, role, displayName, address = '' } = given
  return platform.database.transaction(async (tx) => {
    const user = await createUser(platform, tx, { email, passwordHash, role, displayName })
    await rememberLoginAddress(platform, tx, user.id, address)
    await mailVerification(platform, tx, user.id)
    return { userId: user.id, ...(await openSession(platform, tx, user, given)) }
  })
}

/**
 * Logs a user in. An unknown e-mail and a wrong password are both refused with `invalid_credentials`, after the same time; a
 * suspension (`account_suspended`) and a missing code of the second factor (`second_factor_required`) are shown with the right
 * password only. Too many wrong ones: `rate_limited`. An admin in production without a second factor gets a session that can only set one
 * up. `address` is the client's network address.
 */
export async function login(
  platform: Platform,
  email: string,
  password: string,
  address = '',
  { agent, code }: { agent?: string | undefined; code?: string | undefined } = {},
): Promise<OpenedSession> {
  const user = await findUserByEmail(platform.database.reader, email)
  const verdict = await checkCredentials(platform, { email, user, password, address }, async () =>
    // A suspended account uses up no code.
    user?.suspended_at === null ? checkSecondFactor(platform, { user, address }, code) : 'not_needed',
  )
  if (!user || verdict === 'wrong_password') throw wrongCredentials()
  if (user.suspended_at !== null) {
    platform.log.warn({ event: 'suspended_login', ...factsOf({ user, address }) }, 'log-in while suspended')
    throw new Refusal('account_suspended', 'This account is suspended.')
  }
  if (verdict === 'wrong_code' || verdict === 'code_missing') throw codeRefused(verdict)
  return platform.database.transaction(async (tx) => {
    if (!(await lockActiveUser(tx, user))) throw wrongCredentials()
    await notifyOfNewAddress(platform, tx, user.id, { address, agent })
    await rememberLoginAddress(platform, tx, user.id, address)
    const hasFactor = await hasSecondFactor(platform, tx, user.id)
    // It was turned on after the check.
    if (hasFactor && verdict === 'not_needed') throw codeRefused('code_missing')
    const setupOnly = isProductionAdmin(platform, user) && !hasFactor
    const opened = await openSession(platform, tx, user, { address, agent }, setupOnly)
    return { userId: user.id, ...opened, setupOnly }
  })
}

async function notifyOfNewAddress(
  platform: Platform,
  tx: Tx,
  userId: string,
  { address = '', agent }: Origin,
): Promise<void> {
  if (await isFamiliarAddress(platform, tx, userId, address)) return
  const at = platform.clock.now()
  const facts = { at, network: addressPrefix(address), program: clientProgram(agent) }
  await sendMail(platform, tx, { userId, kind: 'new_login', facts })
}

function codeRefused(verdict: 'wrong_code' | 'code_missing'): Refusal {
  if (verdict === 'wrong_code') return wrongCode()
  return new Refusal(
    'second_factor_required',
    'Send the current code of your authenticator app, or a recovery code, as "code".',
  )
}

/**
 * Makes the caller's session fresh for 10 minutes, which some changes need when a second factor is on; while it is off, no session becomes
 * fresh. Refuses with `invalid_credentials`, `second_factor_required` and `rate_limited`.
 */
export async function stepUp(
  platform: Platform,
  actor: Actor,
  given: { password: string; code?: string | undefined; address?: string },
): Promise<void> {
  const user = await findUserById(platform.database.reader, actor.userId)
  if (!user) throw new Refusal('invalid_credentials', 'The password is wrong.')
  const { password, code, address = '' } = given
  const verdict = await checkCredentials(platform, { email: user.email, user, password, address }, () =>
    checkSecondFactor(platform, { user, address }, code),
  )
  if (verdict === 'wrong_password') throw new Refusal('invalid_credentials', 'The password is wrong.')
  if (verdict === 'not_needed') return
  if (verdict !== 'right') throw codeRefused(verdict)
  await platform.database.transaction((tx) => markSessionFresh(platform, tx, actor))
}

function wrongCredentials(): Refusal {
  return new Refusal('invalid_credentials', 'The e-mail or the password is wrong.')
}

/** Ends the caller's session. */
export async function logout(platform: Platform, actor: Actor): Promise<void> {
  await platform.database.transaction((tx) =>
    deleteSessions(tx, { id: actor.sessionId, user_id: actor.userId }),
  )
}

/** Ends one of the caller's sessions. Refuses with `not_found`. */
export async function endOwnSession(platform: Platform, actor: Actor, sessionId: string): Promise<void> {
  await platform.database.transaction((tx) => endSession(tx, actor.userId, sessionId))
}

/** Ends all of the caller's sessions but this one. */
export async function endOtherSessions(platform: Platform, actor: Actor): Promise<void> {
  await platform.database.transaction((tx) => endSessions(tx, actor.userId, actor.sessionId))
}

/**
 * Changes the caller's password and ends their other sessions. Refuses with `invalid_credentials`, `rate_limited`,
 * `validation_failed` (a weak password), `step_up_required`, and `conflict` when the password changed at the same time.
 */
export async function changePassword(
  platform: Platform,
  actor: Actor,
  change: { currentPassword: string; newPassword: string; address?: string },
): Promise<void> {
  await requireFreshSession(platform, actor.userId, actor.sessionId)
  const known = await findUserById(platform.database.reader, actor.userId)
  const { currentPassword: password, address = '' } = change
  const matches =
    known && (await isRightPassword(platform, { email: known.email, user: known, password, address }))
  if (!known || !matches) throw new Refusal('invalid_credentials', 'The current password is wrong.')
  const hashed = await hashNewPassword('new_password', change.newPassword, wordsOf(known))
  await platform.database.transaction(async (tx) => {
    const unchanged = { id: known.id, password_hash: known.password_hash }
    const [user] = await updateRows(tx, 'users', unchanged, { password_hash: hashed })
    if (!user) throw new Refusal('conflict', 'The password was changed meanwhile.')
    await deleteTokens(tx, user.id, 'password_reset')
    await endSessions(tx, user.id, actor.sessionId)
    const facts = { at: platform.clock.now(), by: 'owner' } as const
    await sendMail(platform, tx, { userId: user.id, kind: 'password_changed', facts })
    await recordAudit(platform, tx, {
      actor: user.id,
      action: 'user.change_password',
      subjectType: 'user',
      subjectId: user.id,
      after: { sessions_ended: 'all others' },
    })
  })
}
