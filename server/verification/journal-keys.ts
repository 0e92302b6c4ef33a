import { UNKEYED } from '../ledger/seals/seal.rule.ts'
import { isJournalUnkeyed } from '../platform/crypto/key-mark.ts'
import { createVault } from '../platform/crypto/vault.ts'
import { type KeyInUse, readKeysInUse } from './chain.ts'
import { EVERYTHING } from './scope.ts'
import type { Books } from './verify-books.ts'

export interface JournalKeying {
  /** What entries, heads and seals were made with, the oldest first. */
  keys: (KeyInUse & {
    /** `none`: made without a key. `unknown`: neither APP_KEY nor one of APP_KEYS_FORMER. */
    use: 'current' | 'former' | 'unknown' | 'none'
    /** Position of the seal after which it may not be used. */
    retiredBy: number | null
  })[]
  /** Whether the database is older than keys, and the service has not been started since. */
  isBeforeCutOver: boolean
}

/** From where the journal is keyed, and with which keys. */
export async function describeKeys({ database, keys }: Books, scope = EVERYTHING): Promise<JournalKeying> {
  const db = database.reader
  const retiring = await db
    .selectFrom('ledger_seals')
    .select(['position', 'retires'])
    .where('retires', 'is not', null)
    .execute()
  const retiredBy = new Map(retiring.map(({ position, retires }) => [retires, position]))
  const useOf = (keyId: string | null) => {
    if (keyId === null) return 'none'
    if (keyId === keys.current.id) return 'current'
    return keys.former.some(({ id }) => id === keyId) ? 'former' : 'unknown'
  }
  const found = await readKeysInUse(db, scope)
  return {
    keys: found.map((key) => {
      return { ...key, use: useOf(key.keyId), retiredBy: retiredBy.get(key.keyId ?? UNKEYED) ?? null }
    }),
    isBeforeCutOver: await isJournalUnkeyed(db, createVault(keys)),
  }
}
