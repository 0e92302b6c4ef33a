import { type AppKey, type AppKeys, allKeys } from '../platform/crypto/key-ring.ts'
import type { Digest } from './chain.rule.ts'

const ENTRY = 'affiliate journal entry'
const HEAD = 'affiliate journal head'
const SEAL = 'affiliate journal seal'

export type JournalKeys = ReturnType<typeof journalKeys>

/** The digests of each APP_KEY; each has a key of its own, so that no hash can stand in for one of another kind. */
export function journalKeys(keys: AppKeys) {
  return {
    current: journalKey(keys.current),
    find(keyId: string) {
      const key = allKeys(keys).find(({ id }) => id === keyId)
      return key && journalKey(key)
    },
  }
}

function journalKey(key: AppKey) {
  const digest =
    (purpose: string): Digest =>
    (text) =>
      `${key.id}.${key.mac(purpose, text)}`
  return { id: key.id, entry: digest(ENTRY), head: digest(HEAD), seal: digest(SEAL) }
}
