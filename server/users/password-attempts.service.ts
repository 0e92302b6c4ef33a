import { DAY_MS } from '../../shared/durations.ts'
import { type Refusal, tooMany } from '../platform/api/refusal.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import { addressKey, addressPrefix } from '../platform/network/client-address.ts'
import { RateLimiter, type Standing } from '../platform/network/rate-limiter.ts'
import type { Platform } from '../platform/platform.ts'
import { passwordMatches } from './passwords.ts'
import { hasLoggedInFrom, rememberAddress } from './users.store.ts'

const WINDOW_SECONDS = 15 * 60
/** Wrong passwords from all unfamiliar addresses together, as a multiple of what one address may try. */
const ADDRESSES_PER_ACCOUNT = 10
/** How long an address stays familiar after its last log-in. */
const FAMILIAR_MS = 90 * DAY_MS
const MOST_ADDRESSES = 20
const HASH_PURPOSE = 'login.address'

interface PasswordAttempt {
  /** In lower case; may belong to no account. */
  email: string
  /** `undefined` when no account has the e-mail. */
  user: { id: string; password_hash: string } | undefined
  password: string
  /** The client's. */
  address: string
}

/** The result of a code of the second factor; `not_needed` when the factor is off. */
export type CodeVerdict = 'right' | 'not_needed' | 'wrong_code' | 'code_missing'

/**
 * Compares a password and counts wrong ones: RATE_LIMIT_AUTH in 15 minutes for each pair of account and address, and ten
 * times as many for an account from all addresses that it has not logged in from. So guesses from other addresses do not lock
 * out the owner. Logs a wrong password without its text. Refuses with `rate_limited`, and with `unavailable` when the queue is full.
 */
export async function isRightPassword(platform: Platform, attempt: PasswordAttempt): Promise<boolean> {
  return (await checkCredentials(platform, attempt, async () => 'not_needed')) === 'not_needed'
}

/**
 * As `isRightPassword`; runs `checkCode` if the password is right. A wrong code counts as a wrong password does, a missing one does not
 * count.
 */
export async function checkCredentials(
  platform: Platform,
  attempt: PasswordAttempt,
  checkCode: () => Promise<CodeVerdict>,
): Promise<CodeVerdict | 'wrong_password'> {
  const { pairs, accounts } = limitersOf(platform)
  const pair = `${attempt.email} ${addressKey(attempt.address)}`
  const byPair = await pairs.consume(pair)
  if (byPair?.exceeded) throw limited(platform, attempt, byPair)
  // Also without an account, so that the time taken does not show which accounts exist.
  const familiar =
    platform.config.RATE_LIMIT_AUTH > 0 &&
    (await isFamiliarAddress(platform, platform.database.reader, attempt.user?.id ?? NIL_ID, attempt.address))
  const byAccount = familiar ? null : await accounts.consume(attempt.email)
  if (byAccount?.exceeded) throw limited(platform, attempt, byAccount)
  const compare = async () => {
    if (await passwordMatches(attempt.password, attempt.user?.password_hash)) return checkCode()
    platform.log.warn({ event: 'wrong_password', ...factsOf(attempt) }, 'wrong password')
    return 'wrong_password' as const
  }
  const refund = async () => {
    await pairs.reward(pair)
    if (!familiar) await accounts.reward(attempt.email)
  }
  // Counted before the comparison, so that attempts at the same moment cannot exceed the limit together.
  const verdict = await compare().catch(async (error: unknown) => {
    await refund()
    throw error
  })
  const isRight = verdict === 'right' || verdict === 'not_needed'
  if (isRight || verdict === 'code_missing') await refund()
  if (isRight) await pairs.reset(pair)
  return verdict
}

export interface CodeAttempt {
  user: { id: string }
  /** The client's network address. */
  address: string
}

/**
 * Runs `check` for a code of an account, and counts wrong ones, RATE_LIMIT_AUTH in 15 minutes: those of the app from all addresses
 * together, since they are short; recovery codes for each address, since they cannot be guessed. So no one who has the password can lock
 * the owner out: a recovery code works from the owner's address. Refuses with `rate_limited`.
 */
export async function isRightCode(
  platform: Platform,
  attempt: CodeAttempt,
  kind: 'app' | 'recovery',
  check: () => Promise<boolean>,
): Promise<boolean> {
  const limiters = limitersOf(platform)
  const { id: account } = attempt.user
  const [codes, id] =
    kind === 'app'
      ? [limiters.codes, account]
      : [limiters.recoveryCodes, `${account} ${addressKey(attempt.address)}`]
  const standing = await codes.consume(id)
  if (standing?.exceeded) throw limited(platform, attempt, standing, 'codes')
  const isRight = await check().catch(async (error: unknown) => {
    await codes.reward(id)
    throw error
  })
  if (isRight) await codes.reset(id)
  else platform.log.warn({ event: 'wrong_code', ...factsOf(attempt) }, 'wrong code')
  return isRight
}

/** Records that an account logged in from an address. */
export async function rememberLoginAddress(
  platform: Platform,
  tx: Tx,
  userId: string,
  address = '',
): Promise<void> {
  const used_at = platform.clock.now()
  const row = { user_id: userId, address_hash: hashOf(platform, userId, address), used_at }
  await rememberAddress(tx, row, { since: used_at - FAMILIAR_MS, most: MOST_ADDRESSES })
}

/** Whether an account has logged in from an address within 90 days. */
export function isFamiliarAddress(
  platform: Platform,
  db: Queries,
  userId: string,
  address: string,
): Promise<boolean> {
  const since = platform.clock.now() - FAMILIAR_MS
  return hasLoggedInFrom(db, userId, hashOf(platform, userId, address), since)
}

/** Includes the account, so that the table does not show which accounts share an address. */
function hashOf(platform: Platform, userId: string, address: string): string {
  return platform.vault.fingerprint(`${userId} ${addressKey(address)}`, HASH_PURPOSE)
}

function limited(
  { log }: Platform,
  attempt: PasswordAttempt | CodeAttempt,
  { resetsIn }: Standing,
  what: 'passwords' | 'codes' = 'passwords',
): Refusal {
  log.warn({ event: `${what}_limited`, ...factsOf(attempt) }, `too many wrong ${what}`)
  return tooMany(`Too many wrong ${what} for this account.`, resetsIn)
}

/** What a log line says. Not the e-mail: people type their password into its field. */
export function factsOf({ user, address }: { user: { id: string } | undefined; address: string }) {
  return { accountId: user?.id ?? null, addressPrefix: addressPrefix(address) }
}

const limitersByPlatform = new WeakMap<Platform, ReturnType<typeof createLimiters>>()

function limitersOf(platform: Platform) {
  const limiters = limitersByPlatform.get(platform) ?? createLimiters(platform)
  limitersByPlatform.set(platform, limiters)
  return limiters
}

function createLimiters({ database, config: { RATE_LIMIT_AUTH } }: Platform) {
  const limiter = (name: string, points = RATE_LIMIT_AUTH) =>
    new RateLimiter({ points, seconds: WINDOW_SECONDS }, { shared: { name, database } })
  return {
    pairs: limiter('pairs'),
    accounts: limiter('accounts', RATE_LIMIT_AUTH * ADDRESSES_PER_ACCOUNT),
    codes: limiter('codes'),
    recoveryCodes: limiter('recovery_codes'),
  }
}
