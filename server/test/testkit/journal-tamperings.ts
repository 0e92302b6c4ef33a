import { type RawBuilder, sql } from 'kysely'
import { change, changes, entryOf, NEW_ID, NO_USER, one, posting, type Tampering } from './tampering.ts'

/** Which column of its subject an entry shares its moment with. */
const ENTRY_MOMENTS = [
  ['sale_accepted', 'sales', 'created_at'],
  ['credit_granted', 'credits', 'created_at'],
  ['cycle_closed', 'billing_cycles', 'closed_at'],
  ['cycle_charged', 'billing_cycles', 'charged_at'],
  ['payout_created', 'payouts', 'created_at'],
  ['payout_confirmed', 'payouts', 'settled_at'],
  ['payout_failed', 'payouts', 'settled_at'],
] as const

/** A subject dated a millisecond later than the first entry of a kind, which the report must name. */
function redated(kind: string, table: string, column: string): Tampering {
  const entry = one('ledger_entries', entryOf(kind))
  return {
    invariant: 'entries-dated',
    what: `another time of what a ${kind} entry is about`,
    statement: sql`update ${sql.table(table)} set ${sql.id(column)} = ${sql.id(column)} + 1
      where id = (select subject_id from ledger_entries where cast(id as text) = ${entry})`,
    subject: sql`select ${entry} as subject`,
  }
}

const ENTRIES: Tampering[] = [
  ...changes('ledger_entries', [
    ['entries-have-subjects', 'an entry about nothing', `subject_id = '${NO_USER}'`],
    [
      'entries-have-subjects',
      'an entry of another kind',
      "kind = 'payout_created'",
      entryOf('credit_granted'),
    ],
  ]),
  posting('entries-balance', 'a leg of another amount', 'amount = amount + 1', {
    kind: 'sale_accepted',
    account: 'creator_pending',
  }),
  {
    invariant: 'entries-balance',
    what: 'an entry without legs',
    statement: sql`insert into ledger_entries (id, kind, subject_id, created_at, ledger_id, sequence, hash)
      values (${NEW_ID}, 'payout_failed', ${NEW_ID}, 0, ${NEW_ID}, 1, '')`,
    subject: sql`select ${NEW_ID} as subject`,
  },
  {
    invariant: 'books-balance',
    what: 'a journal that does not sum to zero',
    statement: sql`update ledger_postings set amount = amount + 1 where account = 'platform_fees'`,
    subject: sql`select 'journal' as subject`,
  },
  ...ENTRY_MOMENTS.map(([kind, table, column]) => redated(kind, table, column)),
  posting('accounts-have-owners', 'an account without an owner', `owner_id = '${NO_USER}'`, {
    kind: 'payout_created',
    account: 'creator_released',
  }),
]

const SALE_ENTRY = one('ledger_entries', entryOf('sale_accepted'))
/** An entry with one behind it in its ledger. */
const FOLLOWED = `exists (select 1 from ledger_entries as next
  where next.ledger_id = ledger_entries.ledger_id and next.sequence = ledger_entries.sequence + 1)`

/** The entry behind the first one that is followed: what the chain reports when that one is gone or moved. */
const BEHIND = sql`select cast(next.id as text) as subject from ledger_entries as next
  join ledger_entries as entry on entry.ledger_id = next.ledger_id and next.sequence = entry.sequence + 1
  where cast(entry.id as text) = ${one('ledger_entries', FOLLOWED)}`

function broken(what: string, statement: RawBuilder<unknown>, subject: RawBuilder<unknown>): Tampering {
  return { invariant: 'chain-unbroken', what, statement, subject }
}

const CHAIN: Tampering[] = [
  ...changes('ledger_entries', [
    ['chain-unbroken', 'another time', 'created_at = created_at + 1'],
    ['chain-unbroken', 'another hash', "hash = 'another'"],
    ['chain-unbroken', 'a hash without a key', 'hash = substr(hash, 10)'],
    ['chain-unbroken', 'another subject', `subject_id = ledger_id`],
    [
      'chain-unbroken',
      "an entry in another party's ledger",
      "ledger_id = (select id from users where role = 'merchant' limit 1)",
      entryOf('payout_created'),
    ],
  ]),
  broken(
    'an amount that was changed on both sides, so that it still balances',
    sql`update ledger_postings set amount = amount + case when amount > 0 then 1 else -1 end
      where cast(entry_id as text) = ${SALE_ENTRY} and account in ('merchant_unbilled', 'creator_pending')`,
    sql`select ${SALE_ENTRY} as subject`,
  ),
  posting(
    'chain-unbroken',
    "another creator's account",
    "owner_id = (select id from users where role = 'merchant' limit 1)",
    { kind: 'sale_accepted', account: 'creator_pending' },
  ),
  posting('chain-unbroken', 'legs in another order', 'line = 9', {
    kind: 'sale_accepted',
    account: 'merchant_unbilled',
  }),
  {
    invariant: 'keys-at-hand',
    what: 'an entry with a key that the service does not have',
    statement: change('ledger_entries', "hash = 'deadbeef' || substr(hash, 9)", 'true'),
    subject: sql`select 'key deadbeef' as subject`,
  },
  broken(
    'an entry that was taken out with its sale',
    sql`delete from ledger_entries where cast(id as text) = ${one('ledger_entries', FOLLOWED)}`,
    BEHIND,
  ),
  broken(
    'two entries that changed places',
    sql`update ledger_entries set sequence = case when cast(id as text) = ${one('ledger_entries', FOLLOWED)}
        then sequence + 1 else sequence - 1 end
      where cast(id as text) in (${one('ledger_entries', FOLLOWED)}, (${BEHIND}))`,
    BEHIND,
  ),
  broken(
    'an entry that was put in',
    sql`insert into ledger_entries (id, kind, subject_id, created_at, ledger_id, sequence, hash)
      select ${NEW_ID}, kind, ${NEW_ID}, created_at, ledger_id, sequence, hash from ledger_entries
      where cast(id as text) = ${SALE_ENTRY}`,
    sql`select ${NEW_ID} as subject`,
  ),
]

/** The last entry of the ledger of the first one. */
const LAST = sql`(select cast(entry.id as text) from ledger_entries as entry
  join ledger_heads as head on head.ledger_id = entry.ledger_id and head.sequence = entry.sequence
  where cast(head.ledger_id as text) = (select min(cast(ledger_id as text)) from ledger_heads))`
const FIRST_LEDGER = sql`select min(cast(ledger_id as text)) as subject from ledger_heads`

function head(what: string, statement: RawBuilder<unknown>): Tampering {
  return { invariant: 'heads-at-ends', what, statement, subject: FIRST_LEDGER }
}

const OF_FIRST = sql`where cast(ledger_id as text) = (select min(cast(ledger_id as text)) from ledger_heads)`

const HEADS: Tampering[] = [
  head('a last entry that was taken out', sql`delete from ledger_entries where cast(id as text) = ${LAST}`),
  head('a head that was moved on', sql`update ledger_heads set sequence = sequence + 1 ${OF_FIRST}`),
  head('a head with another hash', sql`update ledger_heads set hash = 'another' ${OF_FIRST}`),
  head('a ledger without a head', sql`delete from ledger_heads ${OF_FIRST}`),
]

function forgedHead(what: string, statement: RawBuilder<unknown>): Tampering {
  return { invariant: 'heads-authentic', what, statement, subject: FIRST_LEDGER }
}

const MACS: Tampering[] = [
  forgedHead(
    'a head with another MAC',
    sql`update ledger_heads set mac = substr(mac, 1, 72) || 'x' ${OF_FIRST}`,
  ),
  forgedHead('a head without a MAC', sql`update ledger_heads set mac = null ${OF_FIRST}`),
  forgedHead('a MAC without a key', sql`update ledger_heads set mac = substr(mac, 10) ${OF_FIRST}`),
  forgedHead(
    'a head that was moved back to the entry before',
    sql`update ledger_heads set sequence = sequence - 1, hash = (select former.hash from ledger_entries as former
      where former.ledger_id = ledger_heads.ledger_id and former.sequence = ledger_heads.sequence - 1) ${OF_FIRST}`,
  ),
]

function seal(what: string, statement: RawBuilder<unknown>, subject = 'seal 1'): Tampering {
  return { invariant: 'seals-hold', what, statement, subject: sql`select ${sql.lit(subject)} as subject` }
}

const SEALS: Tampering[] = [
  seal('another time', sql`update ledger_seals set sealed_at = sealed_at + 1 where position = 1`),
  seal('another digest', sql`update ledger_seals set digest = 'another' where position = 1`),
  seal('a digest without a key', sql`update ledger_seals set digest = substr(digest, 10) where position = 1`),
  seal('a key that is retired', sql`update ledger_seals set retires = 'deadbeef' where position = 1`),
  seal('a seal that was taken out', sql`delete from ledger_seals where position = 1`, 'seal 2'),
  seal('a ledger that is left out', sql`delete from ledger_seal_heads where position = 1`),
  seal('another hash', sql`update ledger_seal_heads set hash = 'another' where position = 1`),
  seal(
    'sealed entries that are gone, heads and all',
    sql`delete from ledger_entries where exists (select 1 from ledger_seal_heads as sealed
      where sealed.position = 1 and sealed.ledger_id = ledger_entries.ledger_id and sealed.sequence = ledger_entries.sequence)`,
  ),
]

export const JOURNAL_TAMPERINGS: readonly Tampering[] = [...ENTRIES, ...CHAIN, ...HEADS, ...MACS, ...SEALS]
