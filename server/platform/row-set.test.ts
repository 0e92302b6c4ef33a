import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../proof/testbed/databases.ts'
import { fc } from '../proof/testbed/property.ts'
import { insertOf, rowSet } from './row-set.ts'

interface Row {
  id: string
  name: string | null
  count: number
  amount: number
}

const COLUMNS = { id: 'uuid', name: 'text', count: 'int', amount: 'bigint' } as const
const readLong = rowSet<Row>('given', { ...COLUMNS, name: 'long' })
const read = rowSet<Row>('given', COLUMNS)
const insert = insertOf<Row>('t', COLUMNS)

const row = fc.record({
  id: fc.uuid({ version: 7 }),
  name: fc.option(
    fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll('\0', '').toWellFormed()),
  ),
  count: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  amount: fc.maxSafeInteger(),
})

for (const dialect of testDialects()) {
  const it = suite<{ testDatabase: TestDatabase }>(`row sets on ${dialect}`)
  it.before(async (context) => {
    context.testDatabase = await openTestDatabase(dialect, { migrated: false })
    const id = dialect === 'sqlite' ? 'text' : 'uuid'
    await context.testDatabase.database.transaction((tx) =>
      sql`create table t (id ${sql.raw(id)} primary key, name text, count int, amount bigint)`.execute(tx),
    )
  })
  it.after(({ testDatabase }) => testDatabase.close())

  it('come back as they were given, in their order, whatever they hold', async ({ testDatabase }) => {
    const { reader } = testDatabase.database
    const check = async (rows: Row[]) => {
      for (const set of [read, readLong]) {
        const found = await sql<Row>`select id, name, count, amount from ${set(dialect, rows)}`.execute(
          reader,
        )
        assert.equal(
          found.rows.map((one) => ({ ...one })),
          rows.map((one) => ({ ...one })),
        )
      }
    }
    await fc.assert(fc.asyncProperty(fc.array(row, { maxLength: 8 }), check), { numRuns: 100 })
    const id = '01890a5d-ac96-774b-bcce-b302099a8057'
    const names = [
      '',
      ' ',
      'NULL',
      ',',
      '"',
      '\\',
      "'",
      '{}',
      '[1]',
      'null',
      '\\u0000',
      'کُرتا 🧵',
      '\u2028',
      '\u0001',
    ]
    await check(names.map((name) => ({ id, name, count: 0, amount: 0 })))
  })

  it('write half of a surrogate pair as the character that says so, and whole pairs as they are', async ({
    testDatabase,
  }) => {
    const given = ['cut 🧵'.slice(0, 5), '\udc00 🧵', '\\ud83e as six letters']
    const rows = given.map((name) => ({
      id: '01890a5d-ac96-774b-bcce-b302099a8057',
      name,
      count: 0,
      amount: 0,
    }))
    const found = await sql<Row>`select name from ${read(dialect, rows)}`.execute(
      testDatabase.database.reader,
    )
    assert.equal(
      found.rows.map((one) => one.name),
      ['cut \ufffd', '\ufffd 🧵', '\\ud83e as six letters'],
    )
  })

  it('are inserted whole or not at all', async ({ testDatabase }) => {
    const { database } = testDatabase
    const one = { id: '01890a5d-ac96-774b-bcce-b302099a8057', name: 'a', count: 1, amount: -5 }
    const write = (rows: Row[]) => database.transaction((tx) => insert(tx, rows))
    const fault = await write([one, { ...one, name: 'b' }]).catch((error) => database.faultOf(error)?.kind)
    assert.is(fault, 'unique')
    const stored = () => sql<Row>`select id, name, count, amount from t`.execute(database.reader)
    assert.equal((await stored()).rows, [])
    await write([one])
    assert.equal((await stored()).rows, [one])
    await write([])
    // More than any one statement takes on SQLite, and the last that cannot be there: the first of its statement go as well.
    const many = Array.from({ length: 107 }, (_, n) => ({
      ...one,
      id: `01890a5d-ac96-774b-bcce-${String(n).padStart(12, '0')}`,
    }))
    const last = await write([...many, one]).catch((error) => database.faultOf(error)?.kind)
    assert.is(last, 'unique')
    assert.equal((await stored()).rows, [one])
    await write(many)
    assert.equal((await sql`select id from t order by id`.execute(database.reader)).rows.length, 108)
  })

  it.run()
}
