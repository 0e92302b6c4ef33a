import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../../test/testkit/databases.ts'
import { pluck } from '../../test/testkit/pluck.ts'
import { fc } from '../../test/testkit/property.ts'
import { faultKind } from '../../test/testkit/rejection.ts'
import { bulkInsert, insertStatement, valuesTable } from './bulk-values.ts'

interface Row {
  id: string
  name: string | null
  count: number
  amount: number
  /** JSON. */
  facts: string | null
}

const COLUMNS = { id: 'uuid', name: 'text', count: 'int', amount: 'bigint', facts: 'json' } as const
const read = valuesTable<Row>('given', COLUMNS)
const insert = bulkInsert<Row>('t', COLUMNS)
const statement = insertStatement<Row>('t', COLUMNS)

const EMPTY: Row = {
  ...{ id: '01890a5d-ac96-774b-bcce-b302099a8057', name: null, count: 0, amount: 0, facts: null },
}
const row = fc.record({
  id: fc.uuid({ version: 7 }),
  name: fc.option(
    fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll('\0', '').toWellFormed()),
  ),
  count: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  amount: fc.maxSafeInteger(),
  facts: fc.option(fc.json({ maxDepth: 2 })),
})

for (const dialect of testDialects()) {
  const it = suite<{ testDatabase: TestDatabase }>(`bulk values on ${dialect}`)
  it.before(async (context) => {
    context.testDatabase = await openTestDatabase(dialect, { migrated: false })
    const id = dialect === 'sqlite' ? 'text' : 'uuid'
    const columns = sql`id ${sql.raw(id)} primary key, name text, count int, amount bigint, facts text`
    await context.testDatabase.database.transaction((tx) => sql`create table t (${columns})`.execute(tx))
  })
  it.after(({ testDatabase }) => testDatabase.close())

  it('come back as they were given, in their order, whatever they hold', async ({ testDatabase }) => {
    const { reader } = testDatabase.database
    const check = async (rows: Row[]) => {
      const found = sql<Row>`select id, name, count, amount, facts from ${read(dialect, rows)}`
      const plain = (one: Row) => ({ ...one })
      assert.equal((await found.execute(reader)).rows.map(plain), rows.map(plain))
    }
    await fc.assert(fc.asyncProperty(fc.array(row, { maxLength: 8 }), check), { numRuns: 100 })
    const plain = ['', ' ', 'NULL', ',', '"', '\\', "'", '{}']
    const names = [...plain, '[1]', 'null', '\\u0000', 'کُرتا 🧵', '\u2028', '\u0001']
    await check(names.map((name) => ({ ...EMPTY, name, facts: JSON.stringify([name]) })))
    await check([EMPTY])
  })

  it('write a lone surrogate as U+FFFD, and whole pairs as they are', async ({ testDatabase }) => {
    const given = ['cut 🧵'.slice(0, 5), '\udc00 🧵', '\\ud83e as six letters']
    const rows = given.map((name) => ({ ...EMPTY, name }))
    const found = sql<Row>`select name from ${read(dialect, rows)}`
    const names = pluck((await found.execute(testDatabase.database.reader)).rows, 'name')
    assert.equal(names, ['cut \ufffd', '\ufffd 🧵', '\\ud83e as six letters'])
  })

  it('are inserted all or none, in a transaction and as a batch', async ({ testDatabase: { database } }) => {
    const rows = Array.from({ length: 120 }, (_, n) => ({
      id: `01890a5d-ac96-774b-bcce-${String(n).padStart(12, '0')}`,
      name: n === 0 ? null : `"{${n}}"`,
      count: n,
      amount: -n,
      facts: n === 0 ? null : JSON.stringify({ n, name: '"\u001e\\' }),
    }))
    const ways = [
      (given: Row[]) => database.transaction((tx) => insert(tx, given)),
      (given: Row[]) => database.executeBatch(statement(dialect, given)),
    ]
    for (const write of ways) {
      await database.transaction((tx) => sql`delete from t`.execute(tx))
      const stored = () =>
        sql<Row>`select id, name, count, amount, facts from t order by id`.execute(database.reader)
      assert.is(await faultKind(database, write([...rows, ...rows.slice(0, 1)])), 'unique')
      assert.equal((await stored()).rows, [])
      await write(rows)
      assert.equal((await stored()).rows, rows)
    }
  })

  it.run()
}
