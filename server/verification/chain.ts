import { type RawBuilder, sql } from 'kysely'
import {
  type ChainedEntry,
  type ChainKeys,
  chainFault,
  type Head,
  headText,
  keyIdOf,
  NO_HASH,
} from '../ledger/chain.rule.ts'
import { CHAINED_ENTRY, chainKeys } from '../ledger/checked-entry.service.ts'
import { type JournalKeys, journalKeys } from '../ledger/journal-keys.ts'
import { retiredKeys } from '../ledger/seals/seals.service.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { valuesTable } from '../platform/database/bulk-values.ts'
import { type Dialect, dialectOf, type Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { type Breach, type Invariant, inPages, sqlInvariant } from './invariant.ts'
import { EVERYTHING, type Scope } from './scope.ts'

const PAGE = 5000

const verifiedHeads = valuesTable<Head>('verified', {
  ledgerId: 'uuid',
  sequence: 'int',
  hash: 'text',
})

/** What must hold of the chains of keyed hashes that the journal is. */
export const CHAIN_INVARIANTS: Invariant[] = [
  {
    name: 'chain-unbroken',
    statement:
      "Each journal entry stands in its own party's ledger, behind the one before it, with the keyed hash of both: none was changed, put in, taken out or moved.",
    table: 'ledger_entries',
    breaches: findFaults,
  },
  {
    name: 'heads-authentic',
    statement: "Each ledger's head carries the MAC of where its ledger ends: no end was cut off or added.",
    table: 'ledger_heads',
    breaches: findForgedHeads,
  },
  {
    name: 'keys-at-hand',
    statement: 'Each key that the journal was made with is APP_KEY or one of APP_KEYS_FORMER.',
    table: 'ledger_entries',
    breaches: findUnknownKeys,
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

/** Checks entries in the order of their chains and reports the first fault of each ledger; later ones follow from it. */
async function findFaults(db: Queries, appKeys: AppKeys, scope: Scope): Promise<Breach[]> {
  const keys = await chainKeys(db, appKeys)
  const starts = new Map(scope.covered?.heads.map((head) => [head.ledgerId, head]))
  let before: Head = { ledgerId: '', sequence: 0, hash: NO_HASH }
  let broken = false
  const faultsAt = (entry: ChainedEntry): Breach[] => {
    if (entry.ledgerId !== before.ledgerId) {
      before = starts.get(entry.ledgerId) ?? { ledgerId: entry.ledgerId, sequence: 0, hash: NO_HASH }
      broken = false
    }
    const fault = broken ? null : chainFault(keys, before, entry)
    before = entry
    if (fault === null) return []
    broken = true
    const subject = `${entry.kind} entry ${entry.id}`
    return [{ subject, detail: `number ${entry.sequence} of ledger ${entry.ledgerId}: ${fault}` }]
  }
  return inPages(
    (after: ChainedEntry | null) => readEntries(db, after, scope),
    (page) => page.flatMap(faultsAt),
  )
}

/** The id tells apart entries that a database writer gave the same place. */
async function readEntries(db: Queries, after: ChainedEntry | null, scope: Scope): Promise<ChainedEntry[]> {
  const verified = scope.covered && verifiedHeads(dialectOf(db), [...scope.covered.heads])
  const behind = after
    ? sql`(entry.ledger_id, entry.sequence, entry.id) > (${after.ledgerId}, ${after.sequence}, ${after.id})`
    : sql`true`
  const found = await sql<ChainedEntry>`
    select ${CHAINED_ENTRY}
    from ${verified ? entriesAfter(verified, dialectOf(db)) : sql`ledger_entries as entry`}
    where ${behind}
    order by entry.ledger_id, entry.sequence, entry.id
    limit ${sql.lit(PAGE)}`.execute(db)
  return found.rows
}

/** Makes each database read the ledgers first, and then the few entries of each: both expect the entries to be many. */
function entriesAfter(verified: RawBuilder<unknown>, dialect: Dialect): RawBuilder<unknown> {
  const start = sql`(
    select head.ledger_id, coalesce(verified.sequence, 0) as sequence
    from ledger_heads as head left join ${verified} on verified."ledgerId" = head.ledger_id
  ) as start`
  return dialect === 'sqlite'
    ? sql`${start} cross join ledger_entries as entry
      on entry.ledger_id = start.ledger_id and entry.sequence > start.sequence`
    : sql`${start} cross join lateral (
        select * from ledger_entries where ledger_id = start.ledger_id and sequence > start.sequence offset 0
      ) as entry`
}

async function findForgedHeads(db: Queries, keys: AppKeys): Promise<Breach[]> {
  const journal = journalKeys(keys)
  const chain = await chainKeys(db, keys)
  return inPages(
    (after: Head | null) => readHeads(db, after),
    (page: readonly StoredHead[]) =>
      page.flatMap((head) => {
        const fault = headFault(chain, journal, head)
        if (fault === null) return []
        const detail = `its head, number ${head.sequence}, ${fault}`
        return [{ subject: `ledger ${head.ledgerId}`, detail }]
      }),
  )
}

type StoredHead = Head & { mac: string | null }

function readHeads(db: Queries, after: Head | null): Promise<StoredHead[]> {
  return db
    .selectFrom('ledger_heads')
    .select(['ledger_id as ledgerId', 'sequence', 'hash', 'mac'])
    .$if(after !== null, (query) => query.where('ledger_id', '>', after?.ledgerId ?? ''))
    .orderBy('ledger_id')
    .limit(PAGE)
    .execute()
}

function headFault(chain: ChainKeys, journal: JournalKeys, head: StoredHead): string | null {
  const keyId = keyIdOf(head.mac ?? '')
  if (keyId === null) return 'was set without the key of this service'
  if (head.sequence > chain.lastWith(keyId, head.ledgerId))
    return `was set with key ${keyId}, which had been retired before`
  const digest = journal.find(keyId)?.head
  if (!digest || digest(headText(head)) === head.mac) return null
  return 'does not have the MAC of where the ledger ended: entries were cut off or added'
}

async function findUnknownKeys(db: Queries, keys: AppKeys, scope: Scope): Promise<Breach[]> {
  const found = await readKeysInUse(db, scope)
  return found.flatMap(({ keyId, entries, first }) => {
    if (journalKeys(keys).find(keyId)) return []
    const what =
      entries === 0
        ? 'heads or seals were'
        : `${entries === 1 ? '1 entry' : `${entries} entries, the first of them`} ${first} ${entries === 1 ? 'was' : 'were'}`
    const detail = `${what} made with this key, which is not in APP_KEY or APP_KEYS_FORMER: add it there to verify them; if no APP_KEY had this id, they are forged`
    return [{ subject: `key ${keyId}`, detail }]
  })
}

interface KeyInUse {
  keyId: string
  entries: number
  /** The id of the first entry with it, and when that was made (epoch ms); `null` without entries. */
  first: string | null
  since: number | null
}

/** The keys that made the entries of the scope, and all heads and seals, oldest first. */
async function readKeysInUse(db: Queries, scope: Scope): Promise<KeyInUse[]> {
  const keyOf = (column: string) => {
    const hash = sql.ref(column)
    return sql`case when length(${hash}) = 73 and substr(${hash}, 9, 1) = '.' then substr(${hash}, 1, 8) end`
  }
  const { rows } = await sql<KeyInUse>`
    select key_id as "keyId", sum(entries) as entries, min(first) as first, min(since) as since from (
      select ${keyOf('hash')} as key_id, count(*) as entries, min(cast(id as text)) as first, min(created_at) as since
      from ledger_entries where ${scope.isNew('ledger_entries.id')} group by 1
      union all select ${keyOf('mac')}, 0, null, null from ledger_heads where mac is not null group by 1
      union all select ${keyOf('digest')}, 0, null, null from ledger_seals group by 1
    ) as made
    where key_id is not null group by key_id order by coalesce(min(since), 9007199254740991), key_id`.execute(
    db,
  )
  return rows.map((row) => ({ ...row, entries: Number(row.entries) }))
}

export type JournalKeying = Awaited<ReturnType<typeof describeKeys>>

/** What entries, heads and seals were made with, the oldest first. */
export async function describeKeys({ database, keys }: Pick<Platform, 'database' | 'keys'>) {
  const db = database.reader
  const retired = await retiredKeys(db)
  const found = await readKeysInUse(db, EVERYTHING)
  const useOf = (keyId: string) => {
    if (keyId === keys.current.id) return 'current'
    return journalKeys(keys).find(keyId) ? 'former' : 'unknown'
  }
  return {
    keys: found.map((key) => ({
      ...key,
      /** `unknown`: neither APP_KEY nor one of APP_KEYS_FORMER. */
      use: useOf(key.keyId),
      /** Position of the seal after which it may not be used. */
      retiredBy: retired.get(key.keyId) ?? null,
    })),
  }
}
