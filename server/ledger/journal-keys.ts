import { type AppKey, type AppKeys, allKeys } from '../platform/crypto/key-ring.ts'
import type { Digest } from './chain.rule.ts'

const ENTRY = 'affiliate journal entry'
const HEAD = 'affiliate journal head'
const SEAL = 'affiliate journal seal'

/** One APP_KEY's digests; each has a key of its own, so that no hash can stand in for one of another kind. */
interface JournalKey {
  readonly id: string
  readonly entry: Digest
  readonly head: Digest
  readonly seal: Digest
}

export interface JournalKeys {
  readonly current: JournalKey
  find(keyId: string): JournalKey | undefined
}

const known = new WeakMap<AppKeys, JournalKeys>()

/** Derived once for each key ring. */
export function journalKeys(keys: AppKeys): JournalKeys {
  const found = known.get(keys)
  if (found) return found
  const all = new Map(allKeys(keys).map((key) => [key.id, journalKey(key)]))
  const made: JournalKeys = {
    current: all.get(keys.current.id) as JournalKey,
    find: (keyId) => all.get(keyId),
  }
  known.set(keys, made)
  return made
}

function journalKey(key: AppKey): JournalKey {
  const digest =
    (purpose: string): Digest =>
    (text) =>
      `${key.id}.${key.mac(purpose, text)}`
  return { id: key.id, entry: digest(ENTRY), head: digest(HEAD), seal: digest(SEAL) }
}
