import type { Insertable } from 'kysely'
import type { Queries, Tx } from '../platform/database.ts'
import type { Schema } from '../platform/schema.ts'
import type { Account } from './ledger.entity.ts'

/** PostgreSQL takes 65,535 parameters a statement, SQLite 32,766. */
const ROWS_AT_ONCE = 2000

/** Adds entries and their postings. The unique (subject, kind) refuses an entry that is there already. */
export async function insertEntries(
  tx: Tx,
  entries: Insertable<Schema['ledger_entries']>[],
  postings: Insertable<Schema['ledger_postings']>[],
): Promise<void> {
  for (let at = 0; at < entries.length; at += ROWS_AT_ONCE) {
    await tx
      .insertInto('ledger_entries')
      .values(entries.slice(at, at + ROWS_AT_ONCE))
      .execute()
  }
  for (let at = 0; at < postings.length; at += ROWS_AT_ONCE) {
    await tx
      .insertInto('ledger_postings')
      .values(postings.slice(at, at + ROWS_AT_ONCE))
      .execute()
  }
}

export interface AccountBalance {
  account: Account
  owner_id: string
  /** Debits less credits, paisa. */
  balance: number
  postings: number
}

/** Balances of one owner's accounts, or of all. */
export function sumAccounts(db: Queries, ownerId: string | null): Promise<AccountBalance[]> {
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

/** Debits of an owner's account, paisa: what has left `payouts_in_transit` one way or the other, for example. */
export async function sumOfKind(
  db: Queries,
  ownerId: string,
  account: Account,
  kind: Schema['ledger_entries']['kind'],
): Promise<number> {
  const row = await db
    .selectFrom('ledger_postings as posting')
    .innerJoin('ledger_entries as entry', 'entry.id', 'posting.entry_id')
    .where('posting.owner_id', '=', ownerId)
    .where('posting.account', '=', account)
    .where('entry.kind', '=', kind)
    .select((query) => query.fn.sum<number | null>('posting.amount').as('amount'))
    .executeTakeFirst()
  return row?.amount ?? 0
}
