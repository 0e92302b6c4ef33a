import { HOUR_MS } from '../../shared/durations.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import type { Tx } from '../platform/database/database.ts'
import { insertRows, updateRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { hashNewPassword } from './passwords.ts'
import { createToken, hashOfToken } from './sessions.service.ts'
import type { TokenPurpose } from './user.entity.ts'
import { lockAccount, passwordChanged, type UserRow, userRow, wordsOf } from './users.service.ts'
import { deleteTokens, findTokenOwner, findUserByEmail, findUserById, takeToken } from './users.store.ts'

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
export async function mailLink(platform: Platform, tx: Tx, user_id: string, purpose: TokenPurpose) {
  // Concurrent requests are counted one after the other, and the link mailed last is the valid one.
  await lockAccount(tx, user_id)
  const { token: text, hash: token_hash } = createToken()
  const created_at = platform.clock.now()
  const expiresAt = created_at + VALID_MS[purpose]
  const token = { text, expiresAt }
  const outcome = await sendMail(platform, tx, { userId: user_id, kind: purpose, facts: {}, token })
  if (outcome !== 'queued') return outcome
  await deleteTokens(tx, user_id, purpose)
  const row = { user_id, purpose, token_hash, created_at, expires_at: expiresAt }
  await insertRows(tx, 'account_tokens', [row])
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
  const { database, keys, clock } = platform
  const hash = hashOfToken(token)
  const owner = hash && (await findTokenOwner(database.reader, keys, 'password_reset', hash, clock.now()))
  const known = owner ? await findUserById(database.reader, owner) : undefined
  if (!hash || !known || known.suspended_at !== null) throw invalidToken()
  const hashed = await hashNewPassword('new_password', newPassword, wordsOf(known))
  await database.transaction(async (tx) => {
    const now = clock.now()
    if ((await takeToken(tx, 'password_reset', hash, now)) === null) throw invalidToken()
    // The link was sent to the address.
    const change = ({ email_verified_at }: UserRow) => ({
      password_hash: hashed,
      email_verified_at: email_verified_at ?? now,
    })
    const [user] = await updateRows(tx, 'users', { id: known.id, suspended_at: null }, change)
    if (!user) throw invalidToken()
    await passwordChanged(platform, tx, user.id, 'reset')
  })
}

/**
 * Mails the link again; does nothing once the address is verified. Refuses with `rate_limited`, and with `conflict` when this service
 * sends no mail.
 */
export async function resendVerification(platform: Platform, userId: string): Promise<void> {
  const user = await userRow(platform.database.reader, userId)
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
export async function verifyEmail({ database, clock }: Platform, token: string): Promise<void> {
  const hash = hashOfToken(token)
  if (!hash) throw invalidToken()
  await database.transaction(async (tx) => {
    const email_verified_at = clock.now()
    const id = await takeToken(tx, 'verify_email', hash, email_verified_at)
    if (id === null) throw invalidToken()
    await updateRows(tx, 'users', { id, email_verified_at: null }, { email_verified_at })
  })
}

function invalidToken(): Refusal {
  return invalidFields([{ path: 'token', message: 'is unknown, used or expired; request a new link' }])
}
