import { sql } from 'kysely'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Queries } from '../platform/database/database.ts'
import { type ChainedEntry, type ChainKeys, chainFault, keyIdOf, legsText, NO_HASH } from './chain.rule.ts'
import type { Entry, EntryKind } from './entries.rule.ts'
import { journalKeys } from './journal-keys.ts'

/** The columns of `ledger_entries as entry` as a `ChainedEntry`: the database writes its postings as `legsText` does. */
export const CHAINED_ENTRY = sql`entry.ledger_id as "ledgerId", entry.sequence, entry.hash, entry.id, entry.kind,
  entry.subject_id as "subjectId", entry.created_at as "createdAt", coalesce((
    select string_agg(line || ' ' || account || ' ' || owner_id || ' ' || amount, ${sql.lit('\n')} order by line)
    from ledger_postings where entry_id = entry.id
  ), '') as legs`

/**
 * The journal entry of a kind about a subject, checked against its keyed hash and the entry before it; `null` without one. Throws
 * `IntegrityError` when it was changed or added outside of the service, and `UnknownKeyError`.
 */
export async function checkedEntry(
  keys: AppKeys,
  db: Queries,
  kind: EntryKind,
  subjectId: string,
): Promise<ChainedEntry | null> {
  const { rows } = await sql<ChainedEntry & { previous: string | null }>`
    select ${CHAINED_ENTRY}, (
      select former.hash from ledger_entries as former
      where former.ledger_id = entry.ledger_id and former.sequence = entry.sequence - 1
    ) as previous
    from ledger_entries as entry where entry.subject_id = ${subjectId} and entry.kind = ${kind} limit 2`.execute(
    db,
  )
  const [entry, second] = rows
  if (!entry) return null
  const broken = (why: string) => new IntegrityError(`its journal entry ${kind} does not hold: ${why}`)
  if (second) throw broken('there are two')
  const chain = await chainKeys(db, keys)
  const keyId = keyIdOf(entry.hash)
  if (keyId !== null && !chain.digest(keyId)) throw new UnknownKeyError(keyId)
  const sequence = entry.previous === null ? 0 : entry.sequence - 1
  const fault = chainFault(
    chain,
    { ledgerId: entry.ledgerId, sequence, hash: entry.previous ?? NO_HASH },
    entry,
  )
  if (fault !== null) throw broken(fault)
  return entry
}

/** Throws `IntegrityError` unless the journal has exactly this entry, made at `at` (epoch ms), and `UnknownKeyError`. */
export async function assertEntry(
  keys: AppKeys,
  db: Queries,
  expected: Entry,
  at: number | null,
): Promise<void> {
  const { kind, subjectId, ledgerId, postings } = expected
  const entry = await checkedEntry(keys, db, kind, subjectId)
  if (!entry) throw new IntegrityError(`the journal has no entry ${kind} for it`)
  if (entry.ledgerId !== ledgerId || entry.createdAt !== at || entry.legs !== legsText(postings))
    throw new IntegrityError(`its journal entry ${kind} says something else`)
}

/** The known keys, and the last entry of each ledger that a retired key may have made. */
export async function chainKeys(db: Queries, keys: AppKeys): Promise<ChainKeys> {
  const journal = journalKeys(keys)
  const rows = await db
    .selectFrom('ledger_seals as seal')
    .leftJoin('ledger_seal_heads as head', 'head.position', 'seal.position')
    .select(['seal.retires', 'head.ledger_id', 'head.sequence'])
    .where('seal.retires', 'is not', null)
    .execute()
  const retired = new Set(rows.map((row) => row.retires))
  const ends = new Map(rows.map((row) => [`${row.retires} ${row.ledger_id}`, row.sequence ?? 0]))
  return {
    digest: (keyId) => journal.find(keyId)?.entry,
    lastWith: (keyId, ledgerId) =>
      retired.has(keyId) ? (ends.get(`${keyId} ${ledgerId}`) ?? 0) : Number.POSITIVE_INFINITY,
  }
}
