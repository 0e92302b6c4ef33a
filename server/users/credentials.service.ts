import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import type { SessionActor } from '../platform/api/procedure.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { updateRows } from '../platform/database/protected-rows.ts'
import { addressPrefix } from '../platform/network/client-address.ts'
import type { Platform } from '../platform/platform.ts'
import { mailLink } from './account-recovery.service.ts'
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
  isProductionAdmin,
  markSessionFresh,
  type OpenedSession,
  type Origin,
  openSession,
} from './sessions.service.ts'
import { createUser, lockActiveUser, type NewUser, passwordChanged, wordsOf } from './users.service.ts'
import { findUserByEmail, findUserById } from './users.store.ts'

interface Registration extends Origin, Omit<NewUser, 'passwordHash'> {
  password: string
  role: 'merchant' | 'creator'
}

/** Creates an account and logs it in. Refuses with `email_taken`, and with `validation_failed` a weak password. */
export async function register(platform: Platform, given: Registration): Promise<OpenedSession> {
  const passwordHash = await hashNewPassword('password', given.password, given)
  return platform.database.transaction(async (tx) => {
    const user = await createUser(platform, tx, { ...given, passwordHash })
    await rememberLoginAddress(platform, tx, user.id, given.address)
    await mailLink(platform, tx, user.id, 'verify_email')
    return openSession(platform, tx, user, given)
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
    if (!(await isFamiliarAddress(platform, tx, user.id, address))) {
      const at = platform.clock.now()
      const facts = { at, network: addressPrefix(address), program: clientProgram(agent) }
      await sendMail(platform, tx, { userId: user.id, kind: 'new_login', facts })
    }
    await rememberLoginAddress(platform, tx, user.id, address)
    const hasFactor = await hasSecondFactor(platform, tx, user.id)
    // It was turned on after the check.
    if (hasFactor && verdict === 'not_needed') throw codeRefused('code_missing')
    const setupOnly = isProductionAdmin(platform, user) && !hasFactor
    return openSession(platform, tx, user, { address, agent }, setupOnly)
  })
}

function codeRefused(verdict: 'wrong_code' | 'code_missing'): Refusal {
  if (verdict === 'wrong_code') return wrongCode()
  return new Refusal(
    'second_factor_required',
    'Send the current code of your authenticator app, or a recovery code, as "code".',
  )
}

/**
 * Makes the caller's session fresh for 10 minutes, which a new API key needs, and further changes when a second factor is on. Turning that
 * on ends it. Refuses with `invalid_credentials`, `second_factor_required` and `rate_limited`.
 */
export async function stepUp(
  platform: Platform,
  actor: SessionActor,
  given: { password: string; code?: string | undefined; address: string },
): Promise<void> {
  const user = await findUserById(platform.database.reader, actor.userId)
  const { password, code, address } = given
  const verdict = user
    ? await checkCredentials(platform, { email: user.email, user, password, address }, () =>
        checkSecondFactor(platform, { user, address }, code),
      )
    : 'wrong_password'
  if (verdict === 'wrong_password') throw new Refusal('invalid_credentials', 'The password is wrong.')
  if (verdict === 'wrong_code' || verdict === 'code_missing') throw codeRefused(verdict)
  await platform.database.transaction((tx) => markSessionFresh(platform, tx, actor))
}

function wrongCredentials(): Refusal {
  return new Refusal('invalid_credentials', 'The e-mail or the password is wrong.')
}

/**
 * Changes the caller's password and ends their other sessions. Refuses with `invalid_credentials`, `rate_limited`,
 * `validation_failed` (a weak password), `step_up_required`, and `conflict` when the password changed at the same time.
 */
export async function changePassword(
  platform: Platform,
  { userId, sessionId }: SessionActor,
  change: { currentPassword: string; newPassword: string; address?: string },
): Promise<void> {
  await requireFreshSession(platform, userId, sessionId)
  const known = await findUserById(platform.database.reader, userId)
  const { currentPassword: password, address = '' } = change
  const matches =
    known && (await isRightPassword(platform, { email: known.email, user: known, password, address }))
  if (!known || !matches) throw new Refusal('invalid_credentials', 'The current password is wrong.')
  const hashed = await hashNewPassword('new_password', change.newPassword, wordsOf(known))
  await platform.database.transaction(async (tx) => {
    const unchanged = { id: userId, password_hash: known.password_hash }
    const [user] = await updateRows(tx, 'users', unchanged, { password_hash: hashed })
    if (!user) throw new Refusal('conflict', 'The password was changed meanwhile.')
    await passwordChanged(platform, tx, userId, 'owner', sessionId)
  })
}
