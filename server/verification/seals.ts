import { sql } from 'kysely'
import { type Head, keyIdOf } from '../ledger/chain.rule.ts'
import { journalKeys } from '../ledger/journal-keys.ts'
import { NO_SEAL, type SealKeys, type SealsSoFar, sealFault } from '../ledger/seals/seal.rule.ts'
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

export interface KeptSeal {
  /** The seal with that digest; `null` when there is none. */
  position: number | null
  /** Epoch ms. */
  sealedAt: number | null
  /** Ledger ends that were compared with the journal. */
  rows: number
  breaches: Breach[]
}

/**
 * Compares the journal with a digest that was kept elsewhere: the one thing that a database writer cannot
 * change along with it.
 */
export async function compareWithKept(db: Queries, keys: AppKeys, digest: string): Promise<KeptSeal> {
  const breaches: Breach[] = []
  let seals = 0
  let rows = 0
  for await (const { seal, heads, faults } of judgedSeals(db, keys)) {
    seals += 1
    rows += heads
    breaches.push(...faults)
    if (seal.digest !== digest) continue
    return {
      position: seal.position,
      sealedAt: seal.sealed_at,
      rows,
      breaches: breaches.slice(0, MOST_BREACHES),
    }
  }
  const known = seals === 1 ? 'the one seal' : `any of the ${seals} seals`
  const detail = `it is not the digest of ${seals === 0 ? 'any seal: there are none' : known} in this database. Either the books were rewritten or seals taken out after it was noted, or it was noted from other books or with a slip`
  return { position: null, sealedAt: null, rows, breaches: [{ subject: `digest ${digest}`, detail }] }
}

interface StoredSeal {
  position: number
  sealed_at: number
  digest: string
  retires: string | null
}

/** Every seal after a verified one, or from the first, with what is wrong with it. */
async function* judgedSeals(db: Queries, ring: AppKeys, verified = { position: 0, digest: NO_SEAL }) {
  const journal = journalKeys(ring)
  const keys: SealKeys = { digest: (keyId) => journal.find(keyId)?.seal }
  const retired = await retiredUpTo(db, verified.position)
  let before: SealsSoFar = { ...verified, retired }
  for (;;) {
    const seals = await readSeals(db, before.position)
    const last = seals.at(-1)
    if (!last) return
    const heads = Map.groupBy(await readHeads(db, before.position, last.position), ({ position }) => position)
    for (const seal of seals) {
      const sealed = heads.get(seal.position) ?? []
      yield { seal, heads: sealed.length, faults: faultsOf(keys, before, seal, sealed) }
      if (seal.retires !== null) retired.set(seal.retires, seal.position)
      before = { ...seal, retired }
    }
  }
}

async function retiredUpTo(db: Queries, position: number): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('ledger_seals')
    .select(['position', 'retires'])
    .where('retires', 'is not', null)
    .where('position', '<=', position)
    .execute()
  return new Map(rows.map(({ position, retires }) => [retires ?? '', position]))
}

function readSeals(db: Queries, after: number): Promise<StoredSeal[]> {
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

function faultsOf(
  keys: SealKeys,
  before: SealsSoFar,
  seal: StoredSeal,
  heads: readonly SealedHead[],
): Breach[] {
  const { position } = seal
  const subject = `seal ${position}`
  const faults: Breach[] = []
  const fault = sealFault(keys, before, {
    ...seal,
    keyId: keyIdOf(seal.digest),
    sealedAt: seal.sealed_at,
    heads,
  })
  if (fault !== null) faults.push({ subject, detail: fault })
  for (const { ledgerId, sequence, hash, found } of heads) {
    if (found === hash) continue
    const now = found === null ? 'is missing' : 'is another one now'
    faults.push({
      subject,
      detail: `entry ${sequence} of ledger ${ledgerId}, which was sealed with it, ${now}`,
    })
  }
  return faults
}
