import { type SqlBool, sql } from 'kysely'
import type { Account } from '../ledger/entries.rule.ts'
import { countOf } from '../platform/database/bulk-values.ts'
import type { Queries } from '../platform/database/database.ts'

/** A posting with its entry; a debit is above zero, paisa. */
export type StatementRow = Awaited<ReturnType<typeof readPostings>>[number]

/** Epoch ms, `to` exclusive. */
export interface StatementPeriod {
  from: number
  to: number
}

export function countPostings(db: Queries, ownerId: string): Promise<number> {
  return countOf(db.selectFrom('ledger_postings').where('owner_id', '=', ownerId))
}

/** The next postings of an owner in a period behind a posting (`null`: the first), in the journal's order. */
export function readPostings(
  db: Queries,
  ownerId: string,
  { from, to }: StatementPeriod,
  after: { entry_id: string; line: number } | null,
  { limit, ofMany }: { limit: number; ofMany: boolean },
) {
  // An index by owner would have all postings of an owner of many sorted for each page.
  const owner = ofMany ? sql`coalesce(posting.owner_id, posting.owner_id)` : sql`posting.owner_id`
  return db
    .selectFrom('ledger_postings as posting')
    .innerJoin('ledger_entries as entry', 'entry.id', 'posting.entry_id')
    .select(['posting.entry_id', 'posting.line', 'entry.kind', 'entry.subject_id', 'entry.created_at'])
    .select(['posting.account', 'posting.amount'])
    .where(sql<SqlBool>`${owner} = ${ownerId}`)
    .where('entry.created_at', '>=', from)
    .where('entry.created_at', '<', to)
    .$if(after !== null, (query) =>
      query
        .where(sql<SqlBool>`(posting.entry_id, posting.line) > (${after?.entry_id}, ${after?.line})`)
        .where('entry.id', '>=', after?.entry_id ?? ''),
    )
    .orderBy('posting.entry_id')
    .orderBy('posting.line')
    .limit(limit)
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
