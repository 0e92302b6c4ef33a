import { sql } from 'kysely'
import { grantCredit } from '../../billing/credits.service.ts'
import { type ChainedEntry, type Digest, entryHash, type Head, NO_HASH } from '../../ledger/chain.rule.ts'
import type { Queries } from '../../platform/database/database.ts'
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
  await db.updateTable('ledger_heads').set({ hash, mac }).where('ledger_id', '=', ledgerId).execute()
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
  await db.updateTable('ledger_heads').set(head).where('ledger_id', '=', ledgerId).execute()
}

/** Makes a journal look as if it had never been keyed: plain hashes, no MACs, no seals. */
export async function stripKeys(db: Queries, sha256: Digest): Promise<void> {
  const heads = new Map<string, Head>()
  for (const entry of await entriesOf(db)) {
    const before = heads.get(entry.ledgerId)?.hash ?? NO_HASH
    const hash = entryHash(sha256, before, entry)
    heads.set(entry.ledgerId, { ...entry, hash })
    await db.updateTable('ledger_entries').set({ hash }).where('id', '=', entry.id).execute()
  }
  for (const { ledgerId, hash } of heads.values()) {
    await db.updateTable('ledger_heads').set({ hash, mac: null }).where('ledger_id', '=', ledgerId).execute()
  }
  await removeSeals(db, 1)
}

/** Removes the seals from this position on. */
export async function removeSeals(db: Queries, position: number): Promise<void> {
  await db.deleteFrom('ledger_seal_heads').where('position', '>=', position).execute()
  await db.deleteFrom('ledger_seals').where('position', '>=', position).execute()
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
