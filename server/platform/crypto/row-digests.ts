import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import { type AppKeys, allKeys } from './key-ring.ts'

/** A column's value as it is digested: times in epoch ms, money in paisa, JSON as its text. */
export type DigestedValue = string | number | boolean | null

/** Binds the values of a row to each other and to its table with a key derived from APP_KEY, so that writing it takes the key. */
interface RowDigests {
  /** `KEYID.HEX`: HMAC-SHA256 with the current key. */
  digest(table: string, values: readonly DigestedValue[]): string
  /** `changed` when the values do not belong to the digest; `unknown_key` when its key is not in the ring. */
  check(stored: string | null, table: string, values: readonly DigestedValue[]): DigestState
}

export type DigestState = 'holds' | 'changed' | 'unknown_key'

const PURPOSE = 'affiliate row digest'

const known = new WeakMap<AppKeys, RowDigests>()

/** Derived once for each key ring. */
export function rowDigests(keys: AppKeys): RowDigests {
  const found = known.get(keys)
  if (found) return found
  const secrets = new Map(allKeys(keys).map((key) => [key.id, createSecretKey(key.derive(PURPOSE))]))
  const hex = (keyId: string, table: string, values: readonly DigestedValue[]): string | null => {
    const secret = secrets.get(keyId)
    return secret
      ? createHmac('sha256', secret)
          .update(JSON.stringify([table, ...values]))
          .digest('hex')
      : null
  }
  const made: RowDigests = {
    digest: (table, values) => `${keys.current.id}.${hex(keys.current.id, table, values)}`,
    check(stored, table, values) {
      const keyId = stored?.match(/^([0-9a-f]{8})\./)?.[1]
      if (!stored || !keyId) return 'changed'
      const expected = hex(keyId, table, values)
      if (expected === null) return 'unknown_key'
      const whole = Buffer.from(`${keyId}.${expected}`)
      const given = Buffer.from(stored)
      return whole.length === given.length && timingSafeEqual(whole, given) ? 'holds' : 'changed'
    },
  }
  known.set(keys, made)
  return made
}
