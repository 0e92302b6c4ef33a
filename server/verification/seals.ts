import { sql } from 'kysely'
import type { Head } from '../ledger/chain.rule.ts'
import { journalKeys } from '../ledger/journal-keys.ts'
import { NO_SEAL, type SealsSoFar, sealFault } from '../ledger/seals/seal.rule.ts'
import { retiredKeys } from '../ledger/seals/seals.service.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import type { Queries } from '../platform/database/database.ts'
import { type Breach, type Invariant, MOST_BREACHES } from './invariant.ts'

/** Each names the ledgers that moved within an hour. */
const SEALS_AT_ONCE = 50

/** What must hold between seals, and between them and the journal. */
export const SEALS_HOLD: Invariant = {
  name: 'seals-hold',
  statement:
    'Seals follow each other without a gap, each with the keyed digest of what it says; what was sealed is still in the journal.',
  table: 'ledger_seals',
  async breaches(db, keys, { covered }) {
    const breaches: Breach[] = []
    for await (const { faults } of judgedSeals(db, keys, covered?.seal)) {
      breaches.push(...faults)
      if (breaches.length >= MOST_BREACHES) break
    }
    return breaches.slice(0, MOST_BREACHES)
  },
}

/**
 * Compares the journal with a digest that was kept elsewhere: the one thing that a database writer cannot change along with it. `rows`
 * counts the ledger ends that were compared.
 */
export async function compareWithKept(
  db: Queries,
  keys: AppKeys,
  digest: string,
): Promise<{ rows: number; breaches: Breach[] }> {
  const breaches: Breach[] = []
  let seals = 0
  let rows = 0
  for await (const { seal, heads, faults } of judgedSeals(db, keys)) {
    seals += 1
    rows += heads
    breaches.push(...faults)
    if (seal.digest === digest) return { rows, breaches: breaches.slice(0, MOST_BREACHES) }
  }
  const known = seals === 1 ? 'the one seal' : `any of the ${seals} seals`
  const detail = `it is not the digest of ${seals === 0 ? 'any seal: there are none' : known} in this database. Either the books were rewritten or seals taken out after it was noted, or it was noted from other books or with a slip`
  return { rows, breaches: [{ subject: `digest ${digest}`, detail }] }
}

/** Every seal after a verified one, or from the first, with what is wrong with it. */
async function* judgedSeals(db: Queries, keys: AppKeys, verified = { position: 0, digest: NO_SEAL }) {
  const retired = await retiredKeys(db)
  for (let before: SealsSoFar = { ...verified, retired }; ; ) {
    const seals = await readSeals(db, before.position)
    const last = seals.at(-1)
    if (!last) return
    const sealed = Map.groupBy(await readHeads(db, before.position, last.position), (head) => head.position)
    for (const seal of seals) {
      const heads = sealed.get(seal.position) ?? []
      const contents = { ...seal, sealedAt: seal.sealed_at, heads }
      const fault = sealFault((keyId) => journalKeys(keys).find(keyId)?.seal, before, contents)
      const details = [...(fault === null ? [] : [fault]), ...heads.flatMap(changedHead)]
      const faults = details.map((detail): Breach => ({ subject: `seal ${seal.position}`, detail }))
      yield { seal, heads: heads.length, faults }
      before = { ...seal, retired }
    }
  }
}

function readSeals(db: Queries, after: number) {
  return db
    .selectFrom('ledger_seals')
    .selectAll()
    .where('position', '>', after)
    .orderBy('position')
    .limit(SEALS_AT_ONCE)
    .execute()
}

interface SealedHead extends Head {
  position: number
  /** The hash that the journal has there now. */
  found: string | null
}

async function readHeads(db: Queries, after: number, upTo: number): Promise<SealedHead[]> {
  const heads = await sql<SealedHead>`
    select sealed.position, sealed.ledger_id as "ledgerId", sealed.sequence, sealed.hash, entry.hash as found
    from ledger_seal_heads as sealed
    left join ledger_entries as entry
      on entry.ledger_id = sealed.ledger_id and entry.sequence = sealed.sequence
    where sealed.position > ${after} and sealed.position <= ${upTo}
    order by sealed.position, sealed.ledger_id`.execute(db)
  return heads.rows
}

function changedHead({ ledgerId, sequence, hash, found }: SealedHead): string[] {
  if (found === hash) return []
  const now = found === null ? 'is missing' : 'is another one now'
  return [`entry ${sequence} of ledger ${ledgerId}, which was sealed with it, ${now}`]
}
