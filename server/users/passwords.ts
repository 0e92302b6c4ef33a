import { randomBytes } from 'node:crypto'
import { hash, type Options, verify } from '@node-rs/argon2'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import common from './common-passwords.json' with { type: 'json' }
import { type AccountWords, passwordWeakness } from './password-strength.rule.ts'

/** OWASP's minimum for argon2id: 19 MiB, two passes, one lane; about 50 ms on one core. */
const ARGON2ID: Options = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** How many hashes may be made at once, so that log-ins cannot take every core and much memory. */
const MAX_RUNNING = 2
/** How many callers may wait; further ones are refused. */
const MAX_WAITING = 100

let running = 0
const waiting: (() => void)[] = []

async function withHashSlot<T>(work: () => Promise<T>): Promise<T> {
  if (running >= MAX_RUNNING) {
    if (waiting.length >= MAX_WAITING) {
      throw new Refusal('unavailable', 'Too many people log in right now. Try again shortly.', {
        retryAfter: 5,
      })
    }
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else {
    running += 1
  }
  try {
    return await work()
  } finally {
    // The slot goes directly to the next caller.
    const next = waiting.shift()
    if (next) next()
    else running -= 1
  }
}

/** The most used passwords, in lower case. */
export const COMMON_PASSWORDS: ReadonlySet<string> = new Set(common.passwords.join(' ').split(' '))

/** Unicode has several encodings of the same characters; all are the same password. */
const bytesOf = (password: string) => Buffer.from(password.normalize('NFKC'))

/** argon2id in PHC form. Refuses with `unavailable` when too many wait. */
export function hashPassword(password: string): Promise<string> {
  return withHashSlot(() => hash(bytesOf(password), ARGON2ID))
}

/**
 * Hashes an account's new password. Refuses a weak one with `validation_failed` on `field`.
 */
export async function hashNewPassword(
  field: 'password' | 'new_password',
  password: string,
  account: AccountWords,
): Promise<string> {
  const weakness = passwordWeakness(password, account, COMMON_PASSWORDS)
  if (weakness !== null) throw invalidFields([{ path: field, message: weakness }])
  return hashPassword(password)
}

/** The hash of a random password. */
let dummy: Promise<string> | undefined

/**
 * Compares a password with a hash. Without a hash (no such account) it takes the same time and returns `false`, so that the
 * time does not show which accounts exist. Refuses with `unavailable` when too many wait.
 */
export async function passwordMatches(password: string, hashed: string | undefined): Promise<boolean> {
  dummy ??= hash(randomBytes(32), ARGON2ID)
  const unknown = await dummy
  const matches = await withHashSlot(() => verify(hashed ?? unknown, bytesOf(password)))
  return matches && hashed !== undefined
}
