import { type RawBuilder, sql } from 'kysely'
import { NO_HASH, OWN_ACCOUNTS } from '../../ledger/chain.rule.ts'
import type { Queries } from '../../platform/database.ts'
import type { Pages } from './invariant.ts'

export interface Suspects {
  /** Entries that were looked at. */
  rows: number
  /** The ledgers of those that the chain's rule would find something wrong with. */
  ledgers: string[]
}

/**
 * PostgreSQL only: has the database itself take each entry's hash anew, without any of them leaving it. The entries of a
 * part are those of a stretch of ids, in the order in which they and their postings lie, so that nothing is looked up one
 * by one. Says where to look, no more: what is wrong there is for the rule to say. Each entry but a ledger's first must
 * have one before it, and no two the same place, so that numbers without a gap follow without going along the chains.
 */
export async function findSuspects(db: Queries, { after, upTo }: Pages): Promise<Suspects> {
  const { rows } = await sql<{ rows: number; ledgers: string | null }>`
    select count(*) as rows, string_agg(distinct cast(judged.ledger_id as text), ' ')
      filter (where judged.sound is not true) as ledgers
    from (
      select entry.ledger_id, entry.hash = ${HASH} and strpos(legs.text, ${OWN_LEG}) > 0 as sound
      from ledger_entries as entry
      left join (
        select entry_id, string_agg(concat_ws(' ', line, account, owner_id, amount), ${LINE_BREAK} order by line) as text
        from ledger_postings where ${within('entry_id', after, upTo)} group by entry_id
      ) as legs on legs.entry_id = entry.id
      left join ledger_entries as former on former.ledger_id = entry.ledger_id
        and former.sequence = entry.sequence - 1 and ${within('former.id', after, upTo)}
      where ${within('entry.id', after, upTo)}
    ) as judged`.execute(db)
  const [found] = rows
  const ledgers = found?.ledgers?.split(' ') ?? []
  // Of all parts together: one of them looks through all places.
  const shared = after === null ? await findSharedPlaces(db) : []
  return { rows: found?.rows ?? 0, ledgers: [...new Set([...ledgers, ...shared])] }
}

function within(column: string, after: string | null, upTo: string | null): RawBuilder<boolean> {
  const key = sql.ref(column)
  const behind = after === null ? sql`true` : sql`${key} > ${after}`
  return sql`${behind} and ${upTo === null ? sql`true` : sql`${key} <= ${upTo}`}`
}

const LINE_BREAK = sql.lit('\n')

/** Of the entry before; nearly always that one is of the same part. */
const FORMER_HASH = sql`case when entry.sequence = 1 then ${sql.lit(NO_HASH)} else coalesce(former.hash, (
    select far.hash from ledger_entries as far
    where far.ledger_id = entry.ledger_id and far.sequence = entry.sequence - 1 limit 1
  )) end`

/** As `entryHash` takes it. Of what could be null, none is there when it is sound. */
const HASH = sql`encode(sha256(convert_to(concat_ws(${LINE_BREAK}, 'entry 1', ${FORMER_HASH}, entry.ledger_id,
    entry.sequence, entry.id, entry.kind, entry.subject_id, entry.created_at, coalesce(legs.text, '')), 'UTF8')), 'hex')`

/** How a leg reads, between its number and its amount, in which an entry moves an account of its ledger's owner. */
const OWN_LEG = sql`' ' || case entry.kind ${sql.join(
  Object.entries(OWN_ACCOUNTS).map(([kind, account]) => sql`when ${sql.lit(kind)} then ${sql.lit(account)}`),
  sql` `,
)} end || ' ' || entry.ledger_id || ' '`

/** Where entries share a place. With numbers that have no gap, as is asked of each entry, those are more than the last says. */
async function findSharedPlaces(db: Queries): Promise<string[]> {
  const { rows } = await sql<{ ledger: string }>`
    select ledger_id as ledger from ledger_entries group by ledger_id having count(*) <> max(sequence)`.execute(
    db,
  )
  return rows.map(({ ledger }) => ledger)
}
