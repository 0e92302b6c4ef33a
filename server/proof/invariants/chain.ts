import { type RawBuilder, sql } from 'kysely'
import { type ChainedEntry, chainFault, type Head, NO_HASH } from '../../ledger/chain.rule.ts'
import { dialectOf, type Queries } from '../../platform/database.ts'
import { among } from '../../platform/row-set.ts'
import { sha256 } from '../../platform/sha256.ts'
import {
  ALL_PAGES,
  type Breach,
  type Invariant,
  MOST_BREACHES,
  type Pages,
  sqlInvariant,
} from './invariant.ts'
import { readAhead } from './read-ahead.ts'
import { findSuspects } from './suspect-ledgers.ts'

const PAGE = 5000

/** What must hold of the chains of hashes that the journal is. */
export const CHAIN_INVARIANTS: Invariant[] = [
  {
    name: 'chain-unbroken',
    statement:
      "Each journal entry stands in its own party's ledger, behind the one before it, with the hash of both: none was changed, put in, taken out or moved.",
    table: 'ledger_entries',
    // PostgreSQL hashes by itself, in the order in which its rows lie; on SQLite all is walked ledger by ledger.
    key: { sqlite: 'ledger_id', postgresql: 'id' },
    breaches: (db, pages = ALL_PAGES) =>
      dialectOf(db) === 'postgresql' ? findSuspectedFaults(db, pages) : findFaults(db, pages),
  },
  sqlInvariant({
    name: 'heads-at-ends',
    statement: "Each ledger's head is its last entry.",
    table: 'ledger_heads',
    breaches: sql`
      select 'ledger ' || head.ledger_id as subject,
        'its head is number ' || head.sequence || ', its last entry number ' || coalesce(last.sequence, 0) as detail
      from ledger_heads as head
      left join (select ledger_id, max(sequence) as sequence from ledger_entries group by ledger_id) as last
        on last.ledger_id = head.ledger_id
      left join ledger_entries as entry
        on entry.ledger_id = head.ledger_id and entry.sequence = head.sequence
      where head.sequence <> coalesce(last.sequence, 0) or (head.sequence > 0 and entry.hash <> head.hash)
      union all
      select 'ledger ' || last.ledger_id, 'it has entries and no head'
      from (select distinct ledger_id from ledger_entries) as last
      left join ledger_heads as head on head.ledger_id = last.ledger_id
      where head.ledger_id is null`,
  }),
]

/** Where a page begins: behind this entry. The id only tells apart entries that somebody gave the same place. */
interface Place {
  ledgerId: string
  sequence: number
  id: string
}

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
const LAST_SEQUENCE = 2 ** 31 - 1

/** Of the ledgers where the database found something wrong, what that is: two parts may both come upon one ledger. */
async function findSuspectedFaults(db: Queries, pages: Pages): Promise<Breach[]> {
  const { rows, ledgers } = await findSuspects(db, pages)
  pages.onRows(rows)
  if (ledgers.length === 0) return []
  return walkLedgers(db, null, sql`entry.ledger_id ${among('postgresql', 'uuid', ledgers)}`, () => {})
}

function findFaults(db: Queries, { after, upTo, onRows }: Pages): Promise<Breach[]> {
  const first = after === null ? null : { ledgerId: after, sequence: LAST_SEQUENCE, id: LAST_ID }
  const within = upTo === null ? sql<boolean>`true` : sql<boolean>`entry.ledger_id <= ${upTo}`
  return walkLedgers(db, first, within, onRows)
}

async function walkLedgers(
  db: Queries,
  first: Place | null,
  within: RawBuilder<boolean>,
  onRows: Pages['onRows'],
): Promise<Breach[]> {
  const breaches: Breach[] = []
  const walk = chainWalk((breach) => breaches.push(breach))
  const read = (after: Place | null) => readEntries(db, after, within)
  for await (const page of readAhead(first, read, (entry): Place => entry)) {
    for (const entry of page) walk(entry)
    onRows(page.length)
    if (breaches.length >= MOST_BREACHES) break
  }
  return breaches.slice(0, MOST_BREACHES)
}

/** Takes entries in the order of their chains and reports the first fault of each ledger: what follows it says no more. */
function chainWalk(report: (breach: Breach) => void): (entry: ChainedEntry) => void {
  let before: Head = { ledgerId: '', sequence: 0, hash: NO_HASH }
  let broken = false
  return (entry) => {
    if (entry.ledgerId !== before.ledgerId) {
      before = { ledgerId: entry.ledgerId, sequence: 0, hash: NO_HASH }
      broken = false
    }
    const fault = broken ? null : chainFault(sha256, before, entry)
    if (fault !== null) {
      broken = true
      const subject = `${entry.kind} entry ${entry.id}`
      report({ subject, detail: `number ${entry.sequence} of ledger ${entry.ledgerId}: ${fault}` })
    }
    before = entry
  }
}

/** The database joins an entry's postings to one text, which is a quarter of the rows to hand over. */
async function readEntries(
  db: Queries,
  after: Place | null,
  within: RawBuilder<boolean>,
): Promise<ChainedEntry[]> {
  const behind = after
    ? sql`(entry.ledger_id, entry.sequence, entry.id) > (${after.ledgerId}, ${after.sequence}, ${after.id})`
    : sql`true`
  const found = await sql<ChainedEntry>`
    select entry.ledger_id as "ledgerId", entry.sequence, entry.hash, entry.id, entry.kind,
      entry.subject_id as "subjectId", entry.created_at as "createdAt", coalesce((
        select string_agg(line || ' ' || account || ' ' || owner_id || ' ' || amount, ${sql.lit('\n')} order by line)
        from ledger_postings where entry_id = entry.id
      ), '') as legs
    from ledger_entries as entry
    where ${behind} and ${within}
    order by entry.ledger_id, entry.sequence, entry.id
    limit ${sql.lit(PAGE)}`.execute(db)
  return found.rows
}
