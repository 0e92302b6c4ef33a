import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { EVENT_STATES } from '../inbox/event-states.ts'
import { ACCOUNTS, ENTRY_KINDS } from '../ledger/entries.rule.ts'
import { openTestDatabase, type TestDatabase, testDialects } from '../test/testkit/databases.ts'
import { idNumber, populate } from '../test/testkit/one-of-each.ts'

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

class Undone extends Error {}

for (const dialect of testDialects()) {
  const it = suite<{ opened: TestDatabase }>(`words of the hot tables on ${dialect}`)
  it.before(async (context) => {
    context.opened = await openTestDatabase(dialect)
    await populate(context.opened.database)
  })
  it.after(({ opened }) => opened.close())

  for (const column of ['kind', 'account', 'state'] as const) {
    it(`are all taken as ${column}, and no others`, async ({ opened: { database } }) => {
      const outcome = async (word: string) => {
        const tried = database.transaction(async (tx) => {
          await sql.raw(inserts[column](word)).execute(tx)
          throw new Undone()
        })
        const error: unknown = await tried.catch((reason: unknown) => reason)
        return error instanceof Undone ? 'taken' : String(error)
      }
      for (const word of words[column]) assert.is(await outcome(word), 'taken', word)
      for (const stranger of ['', 'x', (words[column][0] ?? '').toUpperCase()])
        assert.match(await outcome(stranger), /check constraint/i)
    })

    if (dialect === 'sqlite') {
      it(`are looked up in no index that is made for each row of a new ${column}`, async ({
        opened: { database },
      }) => {
        const statement = inserts[column]('x').replace(
          /select [\s\S]*/,
          `values ('${NEW}', 1, 'x', '${NEW}', 5)`,
        )
        const { rows } = await sql<{ opcode: string }>`explain ${sql.raw(statement)}`.execute(database.reader)
        assert.ok(rows.length > 10 && rows.every(({ opcode }) => opcode !== 'OpenEphemeral'))
      })
    }
  }
  it.run()
}
