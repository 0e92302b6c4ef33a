import { type Expression, type SqlBool, sql } from 'kysely'
import type { Account, EntryKind } from '../ledger/entries.rule.ts'
import { countOf } from '../platform/database/bulk-values.ts'
import type { Queries } from '../platform/database/database.ts'

export interface StatementRow {
  entry_id: string
  line: number
  kind: EntryKind
  subject_id: string
  created_at: number
  account: Account
  /** Debit above zero, paisa. */
  amount: number
}

/** Epoch ms, `to` exclusive. */
export interface StatementPeriod {
  from: number
  to: number
}

export function countPostings(db: Queries, ownerId: string): Promise<number> {
  return countOf(db.selectFrom('ledger_postings').where('owner_id', '=', ownerId))
}

function postingsOf(db: Queries, isOwners: Expression<SqlBool>, { from, to }: StatementPeriod) {
  return db
    .selectFrom('ledger_postings as posting')
    .innerJoin('ledger_entries as entry', 'entry.id', 'posting.entry_id')
    .select([
      'posting.entry_id',
      'posting.line',
      'entry.kind',
      'entry.subject_id',
      'entry.created_at',
      'posting.account',
      'posting.amount',
    ])
    .where(isOwners)
    .where('entry.created_at', '>=', from)
    .where('entry.created_at', '<', to)
    .orderBy('posting.entry_id')
    .orderBy('posting.line')
}

/** All postings of an owner of few in a period, in the journal's order. */
export function readPostings(db: Queries, ownerId: string, period: StatementPeriod): Promise<StatementRow[]> {
  return postingsOf(db, sql<SqlBool>`posting.owner_id = ${ownerId}`, period).execute()
}

/** A stretch of the journal: the entries behind `after`, up to and with `upTo`. */
interface Stretch {
  after: string
  upTo: string
}

/** The stretch of `entries` entries behind `after`; `null` at the journal's end. */
export async function nextStretch(db: Queries, after: string, entries: number): Promise<Stretch | null> {
  const rows = await db
    .selectFrom('ledger_entries')
    .select('id')
    .where('id', '>', after)
    .orderBy('id')
    .limit(entries)
    .execute()
  const last = rows.at(-1)
  return last ? { after, upTo: last.id } : null
}

/**
 * An owner's postings of a period in one stretch of the journal. The owner is no reason to leave the journal's order: an
 * index by owner would have all postings of an owner of many sorted for each stretch.
 */
export function readStretch(
  db: Queries,
  ownerId: string,
  period: StatementPeriod,
  { after, upTo }: Stretch,
): Promise<StatementRow[]> {
  return postingsOf(db, sql<SqlBool>`coalesce(posting.owner_id, posting.owner_id) = ${ownerId}`, period)
    .where('posting.entry_id', '>', after)
    .where('posting.entry_id', '<=', upTo)
    .where('entry.id', '>', after)
    .where('entry.id', '<=', upTo)
    .execute()
}

/** The balance of each of an owner's accounts before a moment (epoch ms): debits less credits, paisa. */
export async function balancesBefore(
  db: Queries,
  ownerId: string,
  moment: number,
): Promise<Map<Account, number>> {
  const rows = await db
    .selectFrom('ledger_postings as posting')
    .innerJoin('ledger_entries as entry', 'entry.id', 'posting.entry_id')
    .select((select) => ['posting.account', select.fn.sum<number>('posting.amount').as('balance')])
    .where('posting.owner_id', '=', ownerId)
    .where('entry.created_at', '<', moment)
    .groupBy('posting.account')
    .execute()
  return new Map(rows.map((row) => [row.account, row.balance]))
}
