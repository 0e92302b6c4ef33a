import { type KeyInUse, readKeysInUse } from './chain.ts'
import { EVERYTHING } from './scope.ts'
import type { Books } from './verify-books.ts'

export interface JournalKeying {
  /** What entries, heads and seals were made with, the oldest first. */
  keys: (KeyInUse & {
    /** `unknown`: neither APP_KEY nor one of APP_KEYS_FORMER. */
    use: 'current' | 'former' | 'unknown'
    /** Position of the seal after which it may not be used. */
    retiredBy: number | null
  })[]
}

/** The keys that the journal was made with. */
export async function describeKeys({ database, keys }: Books, scope = EVERYTHING): Promise<JournalKeying> {
  const db = database.reader
  const retiring = await db
    .selectFrom('ledger_seals')
    .select(['position', 'retires'])
    .where('retires', 'is not', null)
    .execute()
  const retiredBy = new Map(retiring.map(({ position, retires }) => [retires, position]))
  const useOf = (keyId: string) => {
    if (keyId === keys.current.id) return 'current'
    return keys.former.some(({ id }) => id === keyId) ? 'former' : 'unknown'
  }
  const found = await readKeysInUse(db, scope)
  return {
    keys: found.map((key) => {
      return { ...key, use: useOf(key.keyId), retiredBy: retiredBy.get(key.keyId) ?? null }
    }),
  }
}
