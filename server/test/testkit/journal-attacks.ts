import { sql } from 'kysely'
import { grantCredit } from '../../billing/credits.service.ts'
import {
  type ChainedEntry,
  chainEntries,
  type Digest,
  entryHash,
  type Head,
  headText,
  NO_HASH,
} from '../../ledger/chain.rule.ts'
import { journalKeys } from '../../ledger/journal-keys.ts'
import { NO_SEAL, sealDigest } from '../../ledger/seals/seal.rule.ts'
import type { AppKeys } from '../../platform/crypto/key-ring.ts'
import { sha256 } from '../../platform/crypto/vault.ts'
import type { Queries } from '../../platform/database/database.ts'
import type { OpenDatabase } from '../../platform/database/open-database.ts'
import { deleteRows, insertRows, withRowKeys } from '../../platform/database/protected-rows.ts'
import type { Platform } from '../../platform/platform.ts'

/*
 * What an attacker does to the journal who knows the code and may write to the database, but does not have the key. The guards
 * must be gone.
 */

const REFERENCE = 'a credit of the attacker'

/** Grants a credit with all the rows that the service would write. Its hash still has to be made to fit. */
export async function addCredit(platform: Platform, merchantId: string): Promise<void> {
  const grant = { merchantId, amount: 100, reference: REFERENCE, reason: 'none', actor: 'operator' }
  await grantCredit(platform, grant)
}

/** As `addCredit`, with keys that do not open the row heads, which stay as they are. */
export async function forgeCredit(db: Queries, platform: Platform, merchantId: string): Promise<void> {
  const heads = await db.deleteFrom('watermarks').where('name', '=', 'row_heads').returningAll().execute()
  await addCredit(platform, merchantId)
  await db.deleteFrom('watermarks').where('name', '=', 'row_heads').execute()
  await db.insertInto('watermarks').values(heads).execute()
}

/** Hashes a ledger's last entry again with `digest` and moves the head to it; the MAC becomes `mac`. Answers the entry's id. */
export async function rehashLast(
  db: Queries,
  ledgerId: string,
  digest: Digest,
  mac: string | null,
): Promise<string> {
  const { entry, before } = await lastOf(db, ledgerId)
  const hash = entryHash(digest, before, entry)
  await db.updateTable('ledger_entries').set({ hash }).where('id', '=', entry.id).execute()
  await moveHead(db, ledgerId, { hash, mac })
  return entry.id
}

/** Removes the attacker's credit, or one with the same reference, with all its rows, and puts the head back before it. */
export async function cutOffCredit(db: Queries, ledgerId: string): Promise<void> {
  const { entry, before } = await lastOf(db, ledgerId)
  await db.deleteFrom('ledger_postings').where('entry_id', '=', entry.id).execute()
  await db.deleteFrom('ledger_entries').where('id', '=', entry.id).execute()
  await db.deleteFrom('credits').where('reference', '=', REFERENCE).execute()
  await db.deleteFrom('audit_entries').where('action', '=', 'billing.credit').execute()
  const head = { sequence: entry.sequence - 1, hash: before }
  await moveHead(db, ledgerId, head)
}

/** Makes a journal look as if it had never been keyed: plain hashes, no MACs, no seals. */
export async function stripKeys(db: Queries): Promise<void> {
  const heads = new Map<string, Head>()
  for (const entry of await entriesOf(db)) {
    const before = heads.get(entry.ledgerId)?.hash ?? NO_HASH
    const hash = entryHash(sha256, before, entry)
    heads.set(entry.ledgerId, { ...entry, hash })
    await db.updateTable('ledger_entries').set({ hash }).where('id', '=', entry.id).execute()
  }
  for (const { ledgerId, hash } of heads.values()) {
    await moveHead(db, ledgerId, { hash, mac: null })
  }
  await db.deleteFrom('ledger_seal_heads').execute()
  await db.deleteFrom('ledger_seals').execute()
}

async function lastOf(db: Queries, ledgerId: string): Promise<{ entry: ChainedEntry; before: string }> {
  const entries = (await entriesOf(db)).filter((entry) => entry.ledgerId === ledgerId)
  const entry = entries.at(-1)
  if (!entry) throw new Error(`ledger ${ledgerId} is empty`)
  return { entry, before: entries.at(-2)?.hash ?? NO_HASH }
}

/** By ledger and number. */
export async function entriesOf(db: Queries): Promise<ChainedEntry[]> {
  const { rows } = await sql<ChainedEntry>`
    select id, ledger_id as "ledgerId", sequence, hash, kind, subject_id as "subjectId", created_at as "createdAt", (
      select string_agg(line || ' ' || account || ' ' || owner_id || ' ' || amount, ${sql.lit('\n')} order by line)
      from ledger_postings where entry_id = ledger_entries.id
    ) as legs
    from ledger_entries order by ledger_id, sequence`.execute(db)
  return rows
}

async function moveHead(
  db: Queries,
  ledgerId: string,
  head: { sequence?: number; hash: string; mac?: string | null },
): Promise<void> {
  await db.updateTable('ledger_heads').set(head).where('ledger_id', '=', ledgerId).execute()
}

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
  const entries = await entriesOf(db)
  const ledgers = [...new Set(entries.map((entry) => entry.ledgerId))]
  const starts = ledgers.map((ledgerId): Head => ({ ledgerId, sequence: 0, hash: NO_HASH }))
  const { places, heads } = chainEntries(key?.entry ?? sha256, starts, entries)
  for (const [index, { id }] of entries.entries()) {
    await db.updateTable('ledger_entries').set({ hash: places[index]?.hash }).where('id', '=', id).execute()
  }
  for (const head of heads) {
    const mac = key ? key.head(headText(head)) : null
    await moveHead(db, head.ledgerId, { hash: head.hash, mac })
  }
  if (seals) await rewriteSeals(db, keys)
  if (!seals || !keys) return
  await withRowKeys(database, keys).transaction(async (tx) => {
    await insertRows(tx, 'ledger_seals', await deleteRows(tx, 'ledger_seals', sql`true`))
  })
}

async function rewriteSeals(db: Queries, keys: AppKeys | null): Promise<void> {
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
