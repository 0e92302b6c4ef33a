import { randomBytes } from 'node:crypto'
import { OPERATOR, recordAudit } from '../flags/audit.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import type { SecondFactorChange } from '../notifications/channels/mail/mails.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { sealedTable } from '../platform/crypto/sealed-rows.ts'
import { matchingStep, otpauthUrl, toBase32 } from '../platform/crypto/totp.ts'
import { type Binding, IntegrityError, sha256, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { type CodeAttempt, type CodeVerdict, isRightCode } from './password-attempts.service.ts'
import {
  confirmSecondFactor,
  countRecoveryCodes,
  countWithoutSecondFactor,
  deleteRecoveryCodes,
  deleteSecondFactor,
  findSecondFactor,
  insertRecoveryCodes,
  insertSecondFactor,
  type SecondFactorRow,
  takeRecoveryCode,
  takeStep,
} from './second-factors.store.ts'
import { endSessions, endSetup, isProductionAdmin, isSessionFresh } from './sessions.service.ts'
import { findUser, lockAccount, type UserRow } from './users.service.ts'

const SEALED_FOR = 'second_factor.secret'
/** RFC 4226 recommends as many as the hash has. */
const SECRET_BYTES = 20
const RECOVERY_CODES = 10
/** 16 characters in base32. */
const RECOVERY_BYTES = 10

/** Whether a user's second factor is on. Throws `TamperedRow` when it was changed outside of the service, and `UnknownKeyError`. */
export async function hasSecondFactor(
  { keys }: Pick<Platform, 'keys'>,
  db: Queries,
  userId: string,
): Promise<boolean> {
  return isConfirmed(await findSecondFactor(db, keys, userId))
}

/** How many active admins have no second factor. */
export async function countAdminsWithoutSecondFactor(db: Queries): Promise<number> {
  return countWithoutSecondFactor(db, 'admin')
}

function isConfirmed(row: SecondFactorRow | undefined): row is SecondFactorRow {
  return row !== undefined && row.confirmed_at !== null
}

export interface Enrollment {
  /** In base32, to be typed into an authenticator app. */
  secret: string
  /** The same as a QR code's text. */
  otpauthUrl: string
}

/**
 * Starts to set up a second factor; it is off until it is confirmed, and a new start replaces the secret. Refuses with `conflict` while it is
 * on.
 */
export async function startTotp(
  platform: Platform,
  { id: userId, email }: Pick<UserRow, 'id' | 'email'>,
): Promise<Enrollment> {
  const secret = randomBytes(SECRET_BYTES)
  await platform.database.transaction(async (tx) => {
    await lockAccount(tx, userId)
    if (await hasSecondFactor(platform, tx, userId)) throw alreadyOn()
    await deleteSecondFactor(tx, userId)
    const row = { user_id: userId, created_at: platform.clock.now() }
    await insertSecondFactor(tx, {
      ...row,
      secret_encrypted: platform.vault.seal(secret.toString('base64url'), bindingOf(row)),
      confirmed_at: null,
      last_step: 0,
    })
  })
  const issuer = new URL(platform.publicBaseUrl).hostname
  return { secret: toBase32(secret), otpauthUrl: otpauthUrl(issuer, email, secret) }
}

/** `startTotp` for the caller. */
export async function startOwnTotp(platform: Platform, { userId }: Actor): Promise<Enrollment> {
  return startTotp(platform, await findUser(platform, userId))
}

/** `confirmTotp` for the caller, whose session is not restricted to the set-up afterwards. */
export function confirmOwnTotp(platform: Platform, actor: Actor, code: string): Promise<string[]> {
  return confirmTotp(platform, actor.userId, code, actor.userId, (tx) => endSetup(tx, actor))
}

/**
 * Turns the second factor on with a code of the new secret. Returns the recovery codes, which are not stored. `actor` is the
 * user's id, or `OPERATOR`; `alsoDo` runs in the same transaction. Refuses with `conflict` without a start or while it is on, and with `invalid_credentials`.
 */
export async function confirmTotp(
  platform: Platform,
  userId: string,
  code: string,
  actor: string,
  alsoDo?: (tx: Tx) => Promise<void>,
): Promise<string[]> {
  const row = await findSecondFactor(platform.database.reader, platform.keys, userId)
  if (!row) throw new Refusal('conflict', 'Start with POST /auth/totp.')
  if (isConfirmed(row)) throw alreadyOn()
  const now = platform.clock.now()
  const step = matchingStep(openSecret(platform, row), normalized(code), now)
  if (step === null) throw wrongCode()
  return platform.database.transaction(async (tx) => {
    if (!(await confirmSecondFactor(tx, row, { confirmed_at: now, last_step: step }))) {
      throw new Refusal('conflict', 'The second factor changed meanwhile. Start again.')
    }
    await alsoDo?.(tx)
    await record(platform, tx, { userId, actor, change: 'on' })
    return addRecoveryCodes(tx, userId)
  })
}

async function addRecoveryCodes(tx: Tx, userId: string): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, newRecoveryCode)
  const hashes = codes.map((one) => sha256(normalized(one)))
  await insertRecoveryCodes(tx, userId, hashes)
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
    await deleteRecoveryCodes(tx, userId)
    await record(platform, tx, { userId, actor: userId, change: 'codes_renewed' })
    return addRecoveryCodes(tx, userId)
  })
}

/**
 * Turns the caller's second factor off. Refuses with `not_found` when it is off, `conflict` for an admin in production,
 * `step_up_required`, `invalid_credentials` and `rate_limited`.
 */
export async function disableTotp(
  platform: Platform,
  actor: Actor,
  { code, address = '' }: { code: string; address?: string },
): Promise<void> {
  const { userId } = actor
  if (!(await hasSecondFactor(platform, platform.database.reader, userId))) {
    throw noSecondFactor()
  }
  if (isProductionAdmin(platform, actor)) {
    throw new Refusal('conflict', 'Admins need their second factor. An operator can reset it.')
  }
  await requireFreshSession(platform, userId, actor.sessionId)
  // The session is fresh, so the code may be the one that made it so.
  const verdict = await checkSecondFactor(platform, { user: { id: userId }, address }, code, { again: true })
  if (verdict !== 'right') throw wrongCode()
  await platform.database.transaction(async (tx) => {
    if (!(await deleteSecondFactor(tx, userId))) return
    await record(platform, tx, { userId, actor: userId, change: 'off' })
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
    const more = { sessions_ended: 'all' }
    await record(platform, tx, { userId, actor: OPERATOR, change: 'reset', reason, more })
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

async function useCode(
  platform: Platform,
  row: SecondFactorRow,
  code: string,
  again: boolean,
): Promise<boolean> {
  const { user_id: userId } = row
  if (!isAppCode(code)) {
    return platform.database.transaction(async (tx) => {
      if (!(await takeRecoveryCode(tx, userId, sha256(code)))) return false
      const left = await countRecoveryCodes(tx, userId)
      const more = { recovery_codes_left: left }
      await record(platform, tx, { userId, actor: userId, change: 'code_used', more })
      return true
    })
  }
  const step = matchingStep(openSecret(platform, row), code, platform.clock.now())
  if (step === null) return false
  if (again && step === row.last_step) return true
  return platform.database.transaction((tx) => takeStep(tx, userId, step))
}

/** Refuses with `step_up_required` when the user's second factor is on and the session had no step-up lately. */
export async function requireFreshSession(
  platform: Platform,
  userId: string,
  sessionId: string | undefined,
): Promise<void> {
  const { reader } = platform.database
  if (!(await hasSecondFactor(platform, reader, userId))) return
  if (sessionId !== undefined && (await isSessionFresh(platform, userId, sessionId))) return
  throw new Refusal('step_up_required', 'Confirm with POST /auth/step-up first: password and code.')
}

export function wrongCode(): Refusal {
  return new Refusal('invalid_credentials', 'The code is wrong, or was used already.')
}

function noSecondFactor(): Refusal {
  return new Refusal('not_found', 'The second factor is off.')
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
    return Buffer.from(vault.open(row.secret_encrypted, bindingOf(row)), 'base64url')
  } catch (error) {
    if (!(error instanceof IntegrityError || error instanceof UnknownKeyError)) throw error
    throw new Refusal('unavailable', 'Codes cannot be checked right now. Use a recovery code.', {
      internalDetail: `the second factor of user ${row.user_id} ${error.message}`,
    })
  }
}

/** All second factors, for verification and key rotation. */
export const SEALED_SECOND_FACTORS = sealedTable<SecondFactorRow>({
  name: 'second_factors',
  column: 'secret_encrypted',
  key: 'user_id',
  open: (vault, row) => vault.open(row.secret_encrypted, bindingOf(row)),
  seal: (vault, row, secret) => ({ secret_encrypted: vault.seal(secret, bindingOf(row)) }),
})

function bindingOf({ user_id, created_at }: Pick<SecondFactorRow, 'user_id' | 'created_at'>): Binding {
  return { purpose: SEALED_FOR, row: user_id, owner: user_id, facts: [created_at] }
}

interface Change {
  userId: string
  actor: string
  change: SecondFactorChange
  reason?: string
  more?: Record<string, unknown>
}

const ACTIONS: Record<SecondFactorChange, string> = {
  on: 'user.enable_second_factor',
  off: 'user.disable_second_factor',
  reset: 'user.reset_second_factor',
  code_used: 'user.use_recovery_code',
  codes_renewed: 'user.renew_recovery_codes',
}

/** Records a change, and mails its user. */
async function record(platform: Platform, tx: Tx, { userId, actor, change, reason, more }: Change) {
  const facts = { at: platform.clock.now(), change }
  await sendMail(platform, tx, { userId, kind: 'second_factor_changed', facts })
  await recordAudit(platform, tx, {
    actor,
    action: ACTIONS[change],
    subjectType: 'user',
    subjectId: userId,
    reason: reason ?? null,
    after: { second_factor: change !== 'off' && change !== 'reset', ...more },
  })
}
