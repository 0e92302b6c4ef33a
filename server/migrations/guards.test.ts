import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { EVENT_STATES } from '../inbox/event-states.ts'
import { ACCOUNTS, ENTRY_KINDS } from '../ledger/entries.rule.ts'
import type { OpenDatabase } from '../platform/database/open-database.ts'
import { openTestDatabase, type TestDatabase, testDialects } from '../test/testkit/databases.ts'
import { idNumber, populate } from '../test/testkit/one-of-each.ts'
import { messageOf } from '../test/testkit/rejection.ts'

const REFUSED =
  /never overlap|only ever added|never go|made with a key that is in use|this change of \w+ is refused/

const ONLY_ADDED = [
  ...['ledger_entries', 'ledger_postings', 'ledger_seals', 'ledger_seal_heads', 'credits', 'payout_lines'],
  ...['audit_entries', 'operator_deliveries', 'sale_decisions', 'offer_status_changes'],
]

const NEVER_DELETED = [
  ...['sales', 'billing_cycles', 'billing_cycle_shares', 'ledger_heads', 'payouts', 'payout_destinations'],
  ...['billing_accounts', 'affiliate_links', 'link_coupons', 'processor_attempts', 'manual_transfers'],
  'inbound_events',
]

async function change(database: OpenDatabase, statement: string): Promise<bigint> {
  const { numAffectedRows } = await database.transaction((tx) => sql.raw(statement).execute(tx))
  return numAffectedRows ?? 0n
}

const assertRefused = async (database: OpenDatabase, statement: string) =>
  assert.match(await messageOf(change(database, statement)), REFUSED, statement)

/** A row by its number, and a `set` clause. */
type Move = [number: number, set: string]

/** Written as `number set`, separated by ` | `. */
function moves(...texts: string[]): Move[] {
  return texts
    .flatMap((text) => text.split(' | '))
    .map((text) => {
      const [, number, set = ''] = /^(\d+) (.*)$/.exec(text) ?? []
      return [Number(number), set]
    })
}

interface Moves {
  /** What the row's number stands in; `id` unless given. */
  key?: string
  /** No row may meet these. */
  refused: Move[]
  /** In order, on rows as the former moves left them. */
  allowed: Move[]
}

/** Numbers as in `one-of-each.ts`: cycles 60 charged, 61 closed, 62 open; payouts 70 pending to 73 failed; and so on. */
const MOVES: Record<string, Moves> = {
  affiliate_links: {
    refused: moves(
      "40 slug = 'another' | 40 product_ids = 'another' | 40 end_reason = 'another'",
      `40 application_id = '${idNumber(99)}' | 40 offer_id = '${idNumber(99)}'`,
      `40 merchant_id = '${idNumber(99)}' | 40 creator_id = '${idNumber(99)}' | 40 commission_rate = 1`,
      '40 offer_rate = 1 | 40 attribution_window_days = 1 | 40 created_at = 1',
    ),
    allowed: moves("40 row_digest = 'another key' | 40 ended_at = 5, end_reason = 'fake posts'"),
  },
  billing_cycles: {
    refused: moves(
      "60 state = 'closed', processor_payment_reference = null",
      "60 state = 'open', processor_payment_reference = null",
      "60 processor_payment_reference = 'another' | 60 amount_due = 1 | 61 state = 'open'",
      '61 commission_total = commission_total + 1 | 61 fee_total = 0 | 61 credit_total = 1',
      '61 amount_due = 0 | 61 sales_count = 2 | 61 period_end = period_end + 1',
      `62 state = 'charged', processor_payment_reference = 'p' | 62 merchant_id = '${idNumber(2)}'`,
      '62 period_start = period_start - 1 | 60 period_end = period_end + 1',
    ),
    allowed: moves(
      '62 commission_total = commission_total + 1, sales_count = sales_count + 1',
      '62 period_end = period_end + 5',
      "62 state = 'closed', credit_total = 1, amount_due = 10, closed_at = 5",
      "62 processor_invoice_id = 'inv', payment_url = 'https://pay.example'",
      "61 state = 'charged', processor_payment_reference = 'p', charged_at = 5 | 60 state = 'charged'",
    ),
  },
  billing_cycle_shares: {
    key: 'billing_cycle_id',
    refused: moves(
      '60 commission = commission - 1 | 60 commission = commission + 1 | 60 sales_count = 0',
      '60 sales_count = sales_count + 1 | 60 released_at = null | 60 released_at = released_at + 1',
    ),
    allowed: moves('60 carried = 0 | 60 carried = 5'),
  },
  ledger_heads: {
    key: 'ledger_id',
    refused: moves(
      `1 sequence = 0 | 1 hash = 'another' | 1 ledger_id = '${idNumber(2)}', sequence = 9, mac = 'next'`,
      "1 sequence = 2, hash = 'next' | 1 hash = 'another', mac = 'first' | 1 mac = 'first'",
    ),
    allowed: moves("1 sequence = 2, hash = 'next', mac = 'next'"),
  },
  payouts: {
    refused: moves(
      "71 state = 'pending' | 72 state = 'failed' | 72 state = 'submitted' | 73 state = 'paid'",
      `73 state = 'pending' | 70 amount = amount + 1 | 70 creator_id = '${idNumber(1)}'`,
    ),
    allowed: moves(
      "70 state = 'submitted', processor_payout_id = 'x', submitted_at = 5",
      "70 state = 'failed', failure_reason = 'closed', settled_at = 5",
      "71 state = 'paid', settled_at = 5 | 72 state = 'paid'",
    ),
  },
  processor_attempts: {
    refused: moves(
      "101 state = 'waiting' | 101 state = 'refused' | 102 state = 'waiting' | 102 state = 'created'",
      `100 amount = 1 | 100 kind = 'invoice' | 100 request = '{"iban":"another"}'`,
      `100 subject_id = '${idNumber(1)}'`,
    ),
    allowed: moves(
      "100 tries = tries + 1, lease_token = 't', lease_until = 5",
      "100 state = 'created', processor_id = 'x', lease_token = null, settled_at = 5",
    ),
  },
  manual_transfers: {
    refused: moves(
      "104 state = 'open' | 104 state = 'failed' | 105 state = 'paid' | 104 bank_reference = 'another'",
      "103 file = 'another' | 103 amount = 1 | 103 kind = 'invoice' | 103 number = 'PAYANOTHER'",
      `103 subject_id = '${idNumber(1)}'`,
    ),
    allowed: moves(
      "103 state = 'paid', bank_reference = 'x', settled_at = 5 | 103 state = 'paid', row_digest = 'another key'",
    ),
  },
  inbound_events: {
    refused: moves(
      "90 state = 'pending' | 90 state = 'set_aside' | 92 state = 'done' | 91 scope = 'another'",
      "91 delivery_id = 'another' | 91 body_hash = 'another'",
    ),
    allowed: moves(
      "91 lease_token = 't', lease_until = 5",
      "91 state = 'set_aside', attempts = 9, reason = 'malformed' | 91 state = 'pending', attempts = 0",
      "91 state = 'done', finished_at = 5 | 93 state = 'ignored'",
    ),
  },
}

const NEW = idNumber(990)
/** The form of a hash that was made with a key in use. */
const HASH = `${'0a'.repeat(4)}.${'ab'.repeat(32)}`

/** An entry, a posting and an event of no other fault than, perhaps, their word. */
const inserts = {
  kind: (
    word: string,
  ) => `insert into ledger_entries (id, kind, subject_id, created_at, ledger_id, sequence, hash)
    values ('${NEW}', '${word}', '${NEW}', 1, '${NEW}', 1, '${HASH}')`,
  account: (word: string) => `insert into ledger_postings (entry_id, line, account, owner_id, amount)
    select id, 99, '${word}', '${NEW}', 5 from ledger_entries limit 1`,
  state: (
    word: string,
  ) => `insert into inbound_events (id, source, scope, delivery_id, conflict_hash, body_hash,
      received_at, row_digest, state, attempts, next_attempt_at, lease_until)
    values ('${NEW}', 'store', '${NEW}', 'd', '', '', 1, '', '${word}', 0, 1, 0)`,
}
const words = { kind: ENTRY_KINDS, account: ACCOUNTS, state: EVENT_STATES }

/** Encrypted values, what is made again with them, and what stays as it is. */
const RESEALED: Record<string, { sealed: string; key?: string; fixed: string[] }> = {
  payout_destinations: {
    sealed: 'iban_encrypted',
    key: "iban_fingerprint = 'aa'",
    fixed: [
      ...[`id = '${idNumber(6)}'`, `user_id = '${idNumber(1)}'`, "iban_last4 = '0000'"],
      ...["account_title = 'Another'", 'effective_at = effective_at - 1', 'created_at = created_at - 1'],
    ],
  },
  billing_accounts: {
    sealed: 'account_encrypted',
    fixed: [
      ...[`id = '${idNumber(7)}'`, `user_id = '${idNumber(2)}'`, "kind = 'raast_id'"],
      ...["account_last4 = '0000'", 'created_at = created_at - 1'],
    ],
  },
}

for (const dialect of testDialects()) {
  const it = suite<{ testDatabase: TestDatabase; database: OpenDatabase }>(`guards on ${dialect}`)

  it.before(async (context) => {
    context.testDatabase = await openTestDatabase(dialect)
    context.database = context.testDatabase.database
    await populate(context.database)
  })

  it.after(({ testDatabase }) => testDatabase.close())

  for (const table of ONLY_ADDED) {
    it(`${table} only grows`, async ({ database }) => {
      const tables = await database.writer.introspection.getTables()
      const columns = tables.find(({ name }) => name === table)?.columns
      // A digest is made again when APP_KEY changes.
      for (const { name } of (columns ?? []).filter((column) => column.name !== 'row_digest'))
        await assertRefused(database, `update ${table} set "${name}" = "${name}"`)
      await assertRefused(database, `delete from ${table}`)
      if (dialect === 'postgresql') await assertRefused(database, `truncate ${table} cascade`)
    })
  }

  for (const table of NEVER_DELETED) {
    it(`rows of ${table} never go`, async ({ database }) => {
      await assertRefused(database, `delete from ${table}`)
      if (dialect === 'postgresql') await assertRefused(database, `truncate ${table} cascade`)
    })
  }

  for (const [table, { key = 'id', refused, allowed }] of Object.entries(MOVES)) {
    it(`${table} move forward only`, async ({ database }) => {
      const update = ([number, set]: Move) =>
        `update ${table} set ${set} where ${key} = '${idNumber(number)}'`
      for (const move of refused) await assertRefused(database, update(move))
      for (const move of allowed) assert.is(await change(database, update(move)), 1n, move[1])
    })
  }

  it('a link that has ended stays as it ended', async ({ database }) => {
    for (const set of ['ended_at = null, end_reason = null', 'ended_at = 6', "end_reason = 'another'"])
      await assertRefused(database, `update affiliate_links set ${set} where id = '${idNumber(40)}'`)
  })

  for (const column of ['kind', 'account', 'state'] as const) {
    it(`all words of the hot tables are taken as ${column}, and no others`, async ({ database }) => {
      const outcome = async (word: string) => {
        const tried = database.transaction(async (tx) => {
          await sql.raw(inserts[column](word)).execute(tx)
          throw new Error('taken')
        })
        return messageOf(tried)
      }
      for (const word of words[column]) assert.is(await outcome(word), 'taken', word)
      for (const stranger of ['', 'x', (words[column][0] ?? '').toUpperCase()])
        assert.match(await outcome(stranger), /check constraint/i)
    })

    if (dialect === 'sqlite') {
      it(`they need no index that is made for each row of a new ${column}`, async ({ database }) => {
        const values = `values ('${NEW}', 1, 'x', '${NEW}', 5)`
        const statement = inserts[column]('x').replace(/select [\s\S]*/, values)
        const { rows } = await sql<{ opcode: string }>`explain ${sql.raw(statement)}`.execute(database.reader)
        assert.ok(rows.length > 10 && rows.every(({ opcode }) => opcode !== 'OpenEphemeral'))
      })
    }
  }

  it('a sale rejected as not_paid is decided again once; its old decision is kept', async ({ database }) => {
    const second = {
      ...{ acceptance_status: "'accepted'", rejection_reason: 'null', commission: '10000' },
      ...{ billing_cycle_id: `'${idNumber(62)}'`, decided_at: 'created_at + 1' },
      ...{ event_id: `'${idNumber(92)}'`, receipt: `'{"second":1}'` },
    }
    const decide = (changes: Record<string, string> = {}) => {
      const assignments = Object.entries({ ...second, ...changes }).map(
        ([name, value]) => `${name} = ${value}`,
      )
      return `update sales set ${assignments.join(', ')} where id = '${idNumber(66)}'`
    }
    const keep = (receipt = '{}', event = 90) => `
      insert into sale_decisions (sale_id, event_id, decided_at, receipt)
      select id, '${idNumber(event)}', created_at, '${receipt}' from sales where id = '${idNumber(66)}'`
    const assertRefusedAfter = async (before: string, refused: string) => {
      const tried = database.transaction(async (tx) => {
        await sql.raw(before).execute(tx)
        await sql.raw(refused).execute(tx)
        throw new Error('the database took it')
      })
      assert.match(await messageOf(tried), REFUSED, refused)
    }
    await assertRefused(database, decide())
    await assertRefusedAfter(keep('{"other":1}'), decide())
    await assertRefusedAfter(keep('{}', 93), decide())
    const rejected = { acceptance_status: "'rejected'", rejection_reason: "'not_paid'" }
    const refused: Record<string, string>[] = [
      ...[{ created_at: 'created_at + 1' }, { order_id: "'1'" }, { id: `'${idNumber(68)}'` }],
      ...[{ store_id: `'${idNumber(11)}'` }, { merchant_id: `'${idNumber(2)}'` }],
      ...[{ decided_at: 'created_at - 1' }, { decided_at: 'null' }, { event_id: `'${idNumber(90)}'` }],
      { ...rejected, billing_cycle_id: 'null', commission: '0' },
    ]
    for (const changes of refused) await assertRefusedAfter(keep(), decide(changes))
    await change(database, keep())
    assert.is(await change(database, decide()), 1n)
    await assertRefused(database, decide({ decided_at: 'created_at + 2', event_id: `'${idNumber(93)}'` }))
  })

  for (const [table, { sealed, key, fixed }] of Object.entries(RESEALED)) {
    it(`rows of ${table} change only by being encrypted again`, async ({ database }) => {
      const reseal = (...more: string[]) =>
        `update ${table} set ${[`${sealed} = ${sealed} || 'x'`, ...(key ? [key] : []), ...more].join(', ')}`
      for (const assignment of fixed) await assertRefused(database, reseal(assignment))
      if (key) await assertRefused(database, `update ${table} set ${key}`)
      assert.is(await change(database, reseal()), 1n)
    })
  }

  it('the MAC of a head changes only with its place', async ({ database }) => {
    for (const set of ["mac = 'another'", 'mac = null'])
      await assertRefused(database, `update ledger_heads set ${set} where mac is not null`)
  })

  it('new entries and seals name a key that is not retired', async ({ database }) => {
    const entry = (sequence: number, hash: string) => `insert into ledger_entries
      (id, kind, subject_id, created_at, ledger_id, sequence, hash)
      values ('${idNumber(900 + sequence)}', 'cycle_closed', '${idNumber(900 + sequence)}', 5, '${idNumber(1)}', ${sequence}, '${hash}')`
    const seal = (position: number, digest: string, retires: string) =>
      `insert into ledger_seals (position, sealed_at, digest, retires, row_digest)
        values (${position}, 5, '${digest}', ${retires}, '')`
    const hex = (digit: string) => digit.repeat(64)
    for (const hash of [hex('c'), `ab12cd34-${hex('c')}`, `ab12cd34.${hex('c')}c`, '']) {
      await assertRefused(database, entry(2, hash))
      await assertRefused(database, seal(2, hash, 'null'))
    }
    assert.is(await change(database, entry(2, `ab12cd34.${hex('c')}`)), 1n)
    assert.is(await change(database, seal(2, `00000000.${hex('c')}`, "'ab12cd34'")), 1n)
    await assertRefused(database, entry(3, `ab12cd34.${hex('d')}`))
    await assertRefused(database, seal(3, `ab12cd34.${hex('d')}`, 'null'))
    assert.is(await change(database, entry(3, `00000000.${hex('d')}`)), 1n)
  })

  it('cycles of a merchant never overlap', async ({ database }) => {
    const OWN = ['id', 'period_start', 'period_end', 'processor_invoice_id']
    const columns = (await database.writer.introspection.getTables())
      .find(({ name }) => name === 'billing_cycles')
      ?.columns.map(({ name }) => name)
    const rest = columns?.filter((name) => !OWN.includes(name)).join(', ')
    const copy = (from: string, to: string) =>
      `insert into billing_cycles (id, period_start, period_end, ${rest})
        select '${idNumber(69)}', ${from}, ${to}, ${rest} from billing_cycles where id = '${idNumber(60)}'`
    for (const to of ['period_end', 'period_start + 1', 'period_end + 1'])
      await assertRefused(database, copy('period_start - 1', to))
    assert.is(await change(database, copy('period_start - 1', 'period_start')), 1n)
  })

  it.run()
}
