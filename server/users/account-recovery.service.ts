import { HOUR_MS } from '../../shared/durations.ts'
import { recordAudit } from '../flags/audit.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import type { Tx } from '../platform/database/database.ts'
import { updateRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { hashNewPassword } from './passwords.ts'
import { createToken, endSessions, hashOfToken } from './sessions.service.ts'
import type { TokenPurpose } from './user.entity.ts'
import { lockAccount, userNotFound, wordsOf } from './users.service.ts'
import {
  deleteTokens,
  findTokenOwner,
  findUserByEmail,
  findUserById,
  replaceToken,
  setEmailVerified,
  takeToken,
  type UserRow,
} from './users.store.ts'

const VALID_MS: Record<TokenPurpose, number> = { verify_email: 24 * HOUR_MS, password_reset: HOUR_MS }
/** Requests of this process that are under way; further ones are dropped. */
const MAX_REQUESTS = 100

const requestsOf = new WeakMap<Platform, Set<Promise<void>>>()

/**
 * Mails a link to reset the password, if an active account has this address. The work happens after the answer, so that the time
 * taken does not show which accounts exist.
 */
export function requestPasswordReset(platform: Platform, email: string): void {
  const requests = requestsOf.get(platform) ?? new Set()
  requestsOf.set(platform, requests)
  if (requests.size >= MAX_REQUESTS) {
    platform.log.warn({ event: 'password_resets_dropped' }, 'too many requests for password resets')
    return
  }
  const request = new Promise<void>((resolve) => setImmediate(resolve))
    .then(() => mailResetLink(platform, email))
    .catch((error: unknown) => platform.log.error({ err: error }, 'a password reset could not be mailed'))
    .finally(() => requests.delete(request))
  requests.add(request)
}

/** Waits for the requests under way. */
export async function passwordResetsIdle(platform: Platform): Promise<void> {
  await Promise.all(requestsOf.get(platform) ?? [])
}

async function mailResetLink(platform: Platform, email: string): Promise<void> {
  const user = await findUserByEmail(platform.database.reader, email)
  if (!user || user.suspended_at !== null) return
  await platform.database.transaction((tx) => mailLink(platform, tx, user.id, 'password_reset'))
}

/**
 * Mails a new link, which ends earlier ones of the same purpose; not when the address has had its share of them, or no mail is sent.
 * Returns what became of it.
 */
async function mailLink(platform: Platform, tx: Tx, userId: string, purpose: TokenPurpose) {
  // Concurrent requests are counted one after the other, and the link mailed last is the valid one.
  await lockAccount(tx, userId)
  const { token, hash } = createToken()
  const now = platform.clock.now()
  const expiresAt = now + VALID_MS[purpose]
  const outcome = await sendMail(platform, tx, {
    userId,
    kind: purpose,
    facts: {},
    token: { text: token, expiresAt },
  })
  if (outcome === 'queued') {
    await replaceToken(tx, {
      user_id: userId,
      purpose,
      token_hash: hash,
      created_at: now,
      expires_at: expiresAt,
    })
  }
  return outcome
}

/**
 * Sets a new password with the token of a mailed link, which ends the token and all sessions. Refuses an unknown, used or expired token
 * and a weak password with `validation_failed`; after the latter the token is still valid.
 */
export async function resetPassword(
  platform: Platform,
  { token, newPassword }: { token: string; newPassword: string },
): Promise<void> {
  const { reader } = platform.database
  const hash = hashOfToken(token)
  const owner =
    hash && (await findTokenOwner(reader, platform.keys, 'password_reset', hash, platform.clock.now()))
  const known = owner ? await findUserById(reader, owner) : undefined
  if (!hash || !known || known.suspended_at !== null) throw invalidToken()
  const hashed = await hashNewPassword('new_password', newPassword, wordsOf(known))
  await platform.database.transaction(async (tx) => {
    const now = platform.clock.now()
    if ((await takeToken(tx, 'password_reset', hash, now)) === null) throw invalidToken()
    // The link was sent to the address.
    const change = ({ email_verified_at }: UserRow) => ({
      password_hash: hashed,
      email_verified_at: email_verified_at ?? now,
    })
    const [user] = await updateRows(tx, 'users', { id: known.id, suspended_at: null }, change)
    if (!user) throw invalidToken()
    await deleteTokens(tx, user.id)
    await endSessions(tx, user.id)
    await sendMail(platform, tx, {
      userId: user.id,
      kind: 'password_changed',
      facts: { at: now, by: 'reset' },
    })
    await recordAudit(platform, tx, {
      actor: user.id,
      action: 'user.reset_password',
      subjectType: 'user',
      subjectId: user.id,
      after: { sessions_ended: 'all' },
    })
  })
}

/** Mails a new account the link that verifies its address. */
export async function mailVerification(platform: Platform, tx: Tx, userId: string): Promise<void> {
  await mailLink(platform, tx, userId, 'verify_email')
}

/**
 * Mails the link again; does nothing once the address is verified. Refuses with `rate_limited`, and with `conflict` when this service
 * sends no mail.
 */
export async function resendVerification(platform: Platform, userId: string): Promise<void> {
  const user = await findUserById(platform.database.reader, userId)
  if (!user) throw userNotFound()
  if (user.email_verified_at !== null) return
  const outcome = await platform.database.transaction((tx) => mailLink(platform, tx, userId, 'verify_email'))
  if (outcome === 'off') throw new Refusal('conflict', 'This service sends no e-mail. Contact its operator.')
  if (outcome === 'limited') {
    throw new Refusal('rate_limited', 'At most 5 of these e-mails an hour. Try again later.', {
      retryAfter: 3600,
    })
  }
}

/** Verifies an account's address with the token of a mailed link, once. Refuses another token with `validation_failed`. */
export async function verifyEmail(platform: Platform, token: string): Promise<void> {
  const hash = hashOfToken(token)
  if (!hash) throw invalidToken()
  await platform.database.transaction(async (tx) => {
    const now = platform.clock.now()
    const userId = await takeToken(tx, 'verify_email', hash, now)
    if (userId === null) throw invalidToken()
    await setEmailVerified(tx, userId, now)
  })
}

function invalidToken(): Refusal {
  return invalidFields([{ path: 'token', message: 'is unknown, used or expired; request a new link' }])
}
