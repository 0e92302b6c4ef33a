import { type Kysely, sql } from 'kysely'
import { type ChainedEntry, chainEntries, type Head, headText, NO_HASH } from '../../ledger/chain.rule.ts'
import { journalKeys } from '../../ledger/journal-keys.ts'
import { NO_SEAL, sealDigest } from '../../ledger/seals/seal.rule.ts'
import type { AppKeys } from '../../platform/crypto/key-ring.ts'
import { sha256 } from '../../platform/crypto/vault.ts'
import type { OpenDatabase } from '../../platform/database/open-database.ts'
import { deleteRows, insertRows, withRowKeys } from '../../platform/database/protected-rows.ts'
import type { Schema } from '../../platform/database/schema.ts'

export interface Rewriting {
  /** Whether the seals are made to fit too. */
  seals: boolean
  /** What a rewriter has who has the service's key too; `null`: only plain SHA-256. */
  keys: AppKeys | null
}

/**
 * Dates the first accepted sale a millisecond later and computes all hashes again, as an attacker can who knows the code and
 * may write to the database. The guards must be gone.
 */
export async function rewriteJournal(database: OpenDatabase, { seals, keys }: Rewriting): Promise<void> {
  const db = database.writer
  const key = keys && journalKeys(keys).current
  const sale = sql`(select min(cast(id as text)) from sales where acceptance_status = 'accepted')`
  await sql`update sales set created_at = created_at + 1 where cast(id as text) = ${sale}`.execute(db)
  await sql`update ledger_entries set created_at = created_at + 1
    where kind = 'sale_accepted' and cast(subject_id as text) = ${sale}`.execute(db)
  const entries = await sql<ChainedEntry>`
    select id, ledger_id as "ledgerId", kind, subject_id as "subjectId", created_at as "createdAt", (
      select string_agg(line || ' ' || account || ' ' || owner_id || ' ' || amount, ${sql.lit('\n')} order by line)
      from ledger_postings where entry_id = ledger_entries.id
    ) as legs
    from ledger_entries order by ledger_id, sequence`.execute(db)
  const ledgers = [...new Set(entries.rows.map((entry) => entry.ledgerId))]
  const starts = ledgers.map((ledgerId): Head => ({ ledgerId, sequence: 0, hash: NO_HASH }))
  const { places, heads } = chainEntries(key?.entry ?? sha256, starts, entries.rows)
  for (const [index, { id }] of entries.rows.entries()) {
    await db.updateTable('ledger_entries').set({ hash: places[index]?.hash }).where('id', '=', id).execute()
  }
  for (const head of heads) {
    const mac = key ? key.head(headText(head)) : null
    await db
      .updateTable('ledger_heads')
      .set({ hash: head.hash, mac })
      .where('ledger_id', '=', head.ledgerId)
      .execute()
  }
  if (seals) await rewriteSeals(db, keys)
  if (!seals || !keys) return
  await withRowKeys(database, keys).transaction(async (tx) => {
    await insertRows(tx, 'ledger_seals', await deleteRows(tx, 'ledger_seals', sql`true`))
  })
}

async function rewriteSeals(db: Kysely<Schema>, keys: AppKeys | null): Promise<void> {
  await sql`update ledger_seal_heads set hash = (
    select hash from ledger_entries as entry
    where entry.ledger_id = ledger_seal_heads.ledger_id and entry.sequence = ledger_seal_heads.sequence
  )`.execute(db)
  let previous = NO_SEAL
  for (const seal of await db.selectFrom('ledger_seals').selectAll().orderBy('position').execute()) {
    const heads = await db
      .selectFrom('ledger_seal_heads')
      .select(['ledger_id as ledgerId', 'sequence', 'hash'])
      .where('position', '=', seal.position)
      .orderBy('ledger_id')
      .execute()
    const content = { ...seal, sealedAt: seal.sealed_at, heads }
    previous = sealDigest(keys ? journalKeys(keys).current.seal : sha256, previous, content)
    await db
      .updateTable('ledger_seals')
      .set({ digest: previous })
      .where('position', '=', seal.position)
      .execute()
  }
}
