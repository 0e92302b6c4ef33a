import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { OPERATOR, recordAudit } from '../flags/audit.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import type { SecondFactorChange } from '../notifications/channels/mail/mail-texts.ts'
import type { Actor, SessionActor } from '../platform/api/procedure.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { sealedTable } from '../platform/crypto/sealed-rows.ts'
import { matchingStep, otpauthUrl, toBase32 } from '../platform/crypto/totp.ts'
import { IntegrityError, sha256, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { deleteRows, insertRows, takeRows, updateRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { type CodeAttempt, type CodeVerdict, isRightCode } from './password-attempts.service.ts'
import { endSessions, isProductionAdmin, isSessionFresh } from './sessions.service.ts'
import { lockAccount, userRow } from './users.service.ts'
import {
  countRecoveryCodes,
  deleteSecondFactor,
  findSecondFactor,
  type SecondFactorRow,
} from './users.store.ts'

/** All second factors, for verification and key rotation too. */
export const SEALED_SECOND_FACTORS = sealedTable<SecondFactorRow, 'secret_encrypted'>({
  name: 'second_factors',
  column: 'secret_encrypted',
  key: 'user_id',
  purpose: 'second_factor.secret',
  binding: ({ user_id, created_at }) => ({ owner: user_id, facts: [created_at] }),
})

/** RFC 4226 recommends as many as the hash has. */
const SECRET_BYTES = 20
const RECOVERY_CODES = 10
/** 16 characters in base32. */
const RECOVERY_BYTES = 10

/** Whether a user's second factor is on. Throws `TamperedRow` when it was changed outside of the service, and `UnknownKeyError`. */
export async function hasSecondFactor({ keys }: Pick<Platform, 'keys'>, db: Queries, userId: string) {
  return isConfirmed(await findSecondFactor(db, keys, userId))
}

export { countAdminsWithoutSecondFactor } from './users.store.ts'

function isConfirmed(row: SecondFactorRow | undefined): row is SecondFactorRow {
  return row !== undefined && row.confirmed_at !== null
}

/**
 * Starts to set up a second factor; it is off until it is confirmed, and a new start replaces the secret. Returns the secret in base32, and
 * as the text of a QR code. Refuses with `conflict` while it is on.
 */
export async function startTotp(platform: Platform, userId: string) {
  const secret = randomBytes(SECRET_BYTES)
  const { email } = await platform.database.transaction(async (tx) => {
    await lockAccount(tx, userId)
    if (await hasSecondFactor(platform, tx, userId)) throw alreadyOn()
    await deleteSecondFactor(tx, userId)
    const row = { user_id: userId, created_at: platform.clock.now(), confirmed_at: null, last_step: 0 }
    const sealed = SEALED_SECOND_FACTORS.seal(platform.vault, row, secret.toString('base64url'))
    await insertRows(tx, 'second_factors', [{ ...row, ...sealed }])
    return userRow(tx, userId)
  })
  return {
    secret: toBase32(secret),
    otpauthUrl: otpauthUrl(platform.config.MARKETPLACE_NAME, email, secret),
  }
}

/**
 * Turns the second factor on with a code of the new secret. Returns the recovery codes, which are not stored. `actor` is the
 * user's id, or `OPERATOR`; a session that could only set it up can do everything afterwards. Refuses with `conflict` without a start or
 * while it is on, and with `invalid_credentials`.
 */
export async function confirmTotp(
  platform: Platform,
  userId: string,
  code: string,
  actor: string,
  sessionId?: string,
): Promise<string[]> {
  const row = await findSecondFactor(platform.database.reader, platform.keys, userId)
  if (!row) throw new Refusal('conflict', 'Start with POST /auth/totp.')
  if (row.confirmed_at !== null) throw alreadyOn()
  const now = platform.clock.now()
  const step = matchingStep(openSecret(platform, row), normalized(code), now)
  if (step === null) throw wrongCode()
  return platform.database.transaction(async (tx) => {
    const unchanged = { user_id: userId, secret_encrypted: row.secret_encrypted, confirmed_at: null }
    const [confirmed] = await updateRows(tx, 'second_factors', unchanged, {
      confirmed_at: now,
      last_step: step,
    })
    if (!confirmed) throw new Refusal('conflict', 'The second factor changed meanwhile. Start again.')
    if (sessionId) await updateRows(tx, 'sessions', { id: sessionId, user_id: userId }, { setup_only: 0 })
    // Until now the password alone made a session fresh.
    const fresh = sql`user_id = ${userId} and fresh_until is not null`
    await updateRows(tx, 'sessions', fresh, { fresh_until: null })
    await record(platform, tx, userId, 'on', { actor })
    return addRecoveryCodes(tx, userId)
  })
}

async function addRecoveryCodes(tx: Tx, userId: string): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, newRecoveryCode)
  const rows = codes.map((code) => ({ user_id: userId, code_hash: sha256(normalized(code)) }))
  await insertRows(tx, 'recovery_codes', rows)
  return codes
}

/**
 * Replaces the caller's recovery codes and returns the new ones, which are not stored. Takes a code of the app or a former recovery code.
 * Refuses with `not_found` while the second factor is off, `invalid_credentials` and `rate_limited`.
 */
export async function renewRecoveryCodes(
  platform: Platform,
  { userId }: Actor,
  { code, address = '' }: { code: string; address?: string },
): Promise<string[]> {
  const verdict = await checkSecondFactor(platform, { user: { id: userId }, address }, code)
  if (verdict === 'not_needed') throw noSecondFactor()
  if (verdict !== 'right') throw wrongCode()
  return platform.database.transaction(async (tx) => {
    await lockAccount(tx, userId)
    if (!(await hasSecondFactor(platform, tx, userId))) throw noSecondFactor()
    await deleteRows(tx, 'recovery_codes', { user_id: userId })
    await record(platform, tx, userId, 'codes_renewed')
    return addRecoveryCodes(tx, userId)
  })
}

/**
 * Turns the caller's second factor off. Refuses with `not_found` when it is off, `conflict` for an admin in production,
 * `step_up_required`, `invalid_credentials` and `rate_limited`.
 */
export async function disableTotp(
  platform: Platform,
  actor: SessionActor,
  { code, address = '' }: { code: string; address?: string },
): Promise<void> {
  const { userId } = actor
  if (!(await hasSecondFactor(platform, platform.database.reader, userId))) throw noSecondFactor()
  if (isProductionAdmin(platform, actor)) {
    throw new Refusal('conflict', 'Admins need their second factor. An operator can reset it.')
  }
  await requireFreshSession(platform, userId, actor.sessionId)
  // The session is fresh, so the code may be the one that made it so.
  const verdict = await checkSecondFactor(platform, { user: { id: userId }, address }, code, { again: true })
  if (verdict !== 'right') throw wrongCode()
  await platform.database.transaction(async (tx) => {
    if (await deleteSecondFactor(tx, userId)) await record(platform, tx, userId, 'off')
  })
}

/**
 * Removes a user's second factor and ends their sessions, from the command line only; `false` if there was none, and nothing
 * changed.
 */
export function resetSecondFactor(platform: Platform, userId: string, reason: string): Promise<boolean> {
  return platform.database.transaction(async (tx) => {
    if (!(await deleteSecondFactor(tx, userId))) return false
    await endSessions(tx, userId)
    await record(platform, tx, userId, 'reset', { actor: OPERATOR, reason, more: { sessions_ended: 'all' } })
    return true
  })
}

/**
 * Checks and uses up a code: of the authenticator app, or a recovery code. With `again`, the app's code that was used last counts too
 * while it is valid.
 * Refuses with `rate_limited`, and with `unavailable` when the secret does not open.
 */
export async function checkSecondFactor(
  platform: Platform,
  attempt: CodeAttempt,
  code: string | undefined,
  { again = false }: { again?: boolean } = {},
): Promise<CodeVerdict> {
  const row = await findSecondFactor(platform.database.reader, platform.keys, attempt.user.id)
  if (!isConfirmed(row)) return 'not_needed'
  if (code === undefined) return 'code_missing'
  const given = normalized(code)
  const kind = isAppCode(given) ? 'app' : 'recovery'
  const isRight = await isRightCode(platform, attempt, kind, () => useCode(platform, row, given, again))
  return isRight ? 'right' : 'wrong_code'
}

function isAppCode(code: string): boolean {
  return /^\d{6}$/.test(code)
}

async function useCode(platform: Platform, row: SecondFactorRow, code: string, again: boolean) {
  const { user_id: userId } = row
  if (!isAppCode(code)) {
    return platform.database.transaction(async (tx) => {
      const [taken] = await takeRows(tx, 'recovery_codes', { user_id: userId, code_hash: sha256(code) })
      if (!taken) return false
      const more = { recovery_codes_left: await countRecoveryCodes(tx, userId) }
      await record(platform, tx, userId, 'code_used', { more })
      return true
    })
  }
  const step = matchingStep(openSecret(platform, row), code, platform.clock.now())
  if (step === null) return false
  if (again && step === row.last_step) return true
  // Uses up the time step and those before it: one of two callers at the same time gets it.
  const unused = sql`user_id = ${userId} and confirmed_at is not null and last_step < ${step}`
  const used = await platform.database.transaction((tx) =>
    updateRows(tx, 'second_factors', unused, { last_step: step }),
  )
  return used.length === 1
}

/**
 * Refuses with `step_up_required` when the user's second factor is on and the session had no step-up lately; with `always` also when it is
 * off and the session had neither a step-up nor a log-in lately.
 */
export async function requireFreshSession(
  platform: Platform,
  userId: string,
  sessionId: string | undefined,
  { always = false } = {},
): Promise<void> {
  const isOn = await hasSecondFactor(platform, platform.database.reader, userId)
  if (!isOn && !always) return
  if (sessionId !== undefined && (await isSessionFresh(platform, userId, sessionId, { orLogin: !isOn }))) {
    return
  }
  const needed = isOn ? 'password and code' : 'the password'
  throw new Refusal('step_up_required', `Confirm with POST /auth/step-up first: ${needed}.`)
}

export const CODE_WRONG = 'The code is wrong, or was used already.'
export const FACTOR_OFF = 'The second factor is off.'

export function wrongCode(): Refusal {
  return new Refusal('invalid_credentials', CODE_WRONG)
}

function noSecondFactor(): Refusal {
  return new Refusal('not_found', FACTOR_OFF)
}

function alreadyOn(): Refusal {
  return new Refusal('conflict', 'The second factor is on. Turn it off before you set up another one.')
}

/** `ABCD-EFGH-IJKL-MNOP`. */
function newRecoveryCode(): string {
  return (toBase32(randomBytes(RECOVERY_BYTES)).match(/.{4}/g) ?? []).join('-')
}

/** As people type it: with spaces or dashes, in any case. */
function normalized(code: string): string {
  return code.replace(/[\s-]/g, '').toUpperCase()
}

function openSecret({ vault }: Pick<Platform, 'vault'>, row: SecondFactorRow): Buffer {
  try {
    return Buffer.from(SEALED_SECOND_FACTORS.open(vault, row), 'base64url')
  } catch (error) {
    if (!(error instanceof IntegrityError || error instanceof UnknownKeyError)) throw error
    throw new Refusal('unavailable', 'Codes cannot be checked right now. Use a recovery code.', {
      internalDetail: `the second factor of user ${row.user_id} ${error.message}`,
    })
  }
}

const ACTIONS: Record<SecondFactorChange, string> = {
  on: 'user.enable_second_factor',
  off: 'user.disable_second_factor',
  reset: 'user.reset_second_factor',
  code_used: 'user.use_recovery_code',
  codes_renewed: 'user.renew_recovery_codes',
}

/** Records a change, and mails its user. `actor` is the user's id by default. */
async function record(
  platform: Platform,
  tx: Tx,
  userId: string,
  change: SecondFactorChange,
  { actor = userId, reason = null, more }: { actor?: string; reason?: string | null; more?: object } = {},
) {
  const facts = { at: platform.clock.now(), change }
  await sendMail(platform, tx, { userId, kind: 'second_factor_changed', facts })
  await recordAudit(platform, tx, {
    actor,
    action: ACTIONS[change],
    subjectType: 'user',
    subjectId: userId,
    reason,
    after: { second_factor: change !== 'off' && change !== 'reset', ...more },
  })
}
