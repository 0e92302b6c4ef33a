import { type Selectable, sql } from 'kysely'
import { bulkInsert } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { type Head, NO_HASH } from './chain.rule.ts'

type EntryRow = Selectable<Schema['ledger_entries']>
type PostingRow = Selectable<Schema['ledger_postings']>

const newEntries = bulkInsert<EntryRow>('ledger_entries', {
  id: 'uuid',
  kind: 'text',
  subject_id: 'uuid',
  created_at: 'bigint',
  ledger_id: 'uuid',
  sequence: 'int',
  hash: 'text',
})

const newPostings = bulkInsert<PostingRow>('ledger_postings', {
  entry_id: 'uuid',
  line: 'int',
  account: 'text',
  owner_id: 'uuid',
  amount: 'bigint',
})

/** Adds entries and their postings. The unique (subject, kind) refuses an entry that is there already. */
export async function insertEntries(
  tx: Tx,
  entries: readonly EntryRow[],
  postings: readonly PostingRow[],
): Promise<void> {
  await newEntries(tx, entries)
  await newPostings(tx, postings)
}

/**
 * The ends of these ledgers, locked in a fixed order until the transaction ends; a ledger without one gets it. Two first
 * writers of a ledger meet at the insert; the second one then finds the row.
 */
export async function lockHeads(tx: Tx, ledgerIds: readonly string[]): Promise<Head[]> {
  const sorted = [...new Set(ledgerIds)].sort()
  const found = await lockKnownHeads(tx, sorted)
  if (found.length === sorted.length) return found
  const known = new Set(found.map((head) => head.ledgerId))
  const missing = sorted.filter((id) => !known.has(id))
  await tx
    .insertInto('ledger_heads')
    .values(missing.map((ledger_id) => ({ ledger_id, sequence: 0, hash: NO_HASH })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return [...found, ...(await lockKnownHeads(tx, missing))]
}

function lockKnownHeads(tx: Tx, ledgerIds: readonly string[]): Promise<Head[]> {
  return tx
    .selectFrom('ledger_heads')
    .select(['ledger_id as ledgerId', 'sequence', 'hash'])
    .where('ledger_id', 'in', ledgerIds)
    .orderBy('ledger_id')
    .$if(dialectOf(tx) === 'postgresql', (query) => query.forUpdate())
    .execute()
}

/** Keeps others from writing journal entries until the transaction ends. SQLite's transactions are alone anyhow. */
export async function lockAllHeads(tx: Tx): Promise<void> {
  if (dialectOf(tx) === 'postgresql') await sql`lock table ledger_heads in exclusive mode`.execute(tx)
}

/** Whether an entry, a head's MAC or a seal was made with this key. Reads all entries when none was. */
export async function isKeyInJournal(db: Queries, keyId: string): Promise<boolean> {
  const made = (column: string) => sql`substr(${sql.ref(column)}, 1, 9) = ${`${keyId}.`}`
  const { rows } = await sql`select 1 as found where exists (select 1 from ledger_heads where ${made('mac')})
    or exists (select 1 from ledger_seals where ${made('digest')})
    or exists (select 1 from ledger_entries where ${made('hash')})`.execute(db)
  return rows.length > 0
}

/** Moves heads that are locked to where their ledgers end now, each with the MAC of that. */
export async function moveHeads(tx: Tx, heads: readonly (Head & { mac: string })[]): Promise<void> {
  await tx
    .insertInto('ledger_heads')
    .values(heads.map(({ ledgerId, sequence, hash, mac }) => ({ ledger_id: ledgerId, sequence, hash, mac })))
    .onConflict((conflict) =>
      conflict
        .column('ledger_id')
        .doUpdateSet({ sequence: sql`excluded.sequence`, hash: sql`excluded.hash`, mac: sql`excluded.mac` }),
    )
    .execute()
}

export type AccountBalance = Awaited<ReturnType<typeof sumAccounts>>[number]

/** Balances of one owner's accounts, or of all: debits less credits, paisa. */
export function sumAccounts(db: Queries, ownerId: string | null = null) {
  return db
    .selectFrom('ledger_postings')
    .$if(ownerId !== null, (query) => query.where('owner_id', '=', ownerId ?? ''))
    .select((query) => [
      'account',
      'owner_id',
      query.fn.sum<number>('amount').as('balance'),
      query.fn.countAll<number>().as('postings'),
    ])
    .groupBy(['owner_id', 'account'])
    .orderBy('account')
    .orderBy('owner_id')
    .execute()
}

/** What payouts have paid a creator, paisa. */
export async function paidOut(db: Queries, creatorId: string): Promise<number> {
  const row = await db
    .selectFrom('ledger_postings as posting')
    .innerJoin('ledger_entries as entry', 'entry.id', 'posting.entry_id')
    .where('posting.owner_id', '=', creatorId)
    .where('posting.account', '=', 'payouts_in_transit')
    .where('entry.kind', '=', 'payout_confirmed')
    .select((query) => query.fn.sum<number | null>('posting.amount').as('amount'))
    .executeTakeFirst()
  return row?.amount ?? 0
}
