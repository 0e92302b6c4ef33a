import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../proof/testbed/databases.ts'
import { fc } from '../proof/testbed/property.ts'
import { insertion } from './insertion.ts'

interface Row {
  id: string
  name: string | null
  amount: number
}

const insert = insertion<Row>('t', { id: 'uuid', name: 'text', amount: 'bigint' })

const row = fc.record({
  id: fc.uuid({ version: 7 }),
  name: fc.option(
    fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll('\0', '').toWellFormed()),
  ),
  amount: fc.maxSafeInteger(),
})

for (const dialect of testDialects()) {
  const it = suite<{ testDatabase: TestDatabase }>(`insertions on ${dialect}`)
  it.before(async (context) => {
    context.testDatabase = await openTestDatabase(dialect, { migrated: false })
    const id = dialect === 'sqlite' ? 'text' : 'uuid'
    await context.testDatabase.database.transaction((tx) =>
      sql`create table t (id ${sql.raw(id)} primary key, name text, amount bigint)`.execute(tx),
    )
  })
  it.after(({ testDatabase }) => testDatabase.close())

  it('write each row as it was given, however many there are', async ({ testDatabase: { database } }) => {
    const check = async (rows: Row[]) => {
      await database.transaction((tx) => sql`delete from t`.execute(tx))
      await database.writeAtOnce(...insert(dialect, rows))
      const found = await sql<Row>`select id, name, amount from t order by id`.execute(database.reader)
      assert.equal(
        found.rows.map((one) => ({ ...one })),
        rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map((one) => ({ ...one })),
      )
    }
    const rows = fc.uniqueArray(row, { selector: ({ id }) => id, minLength: 1, maxLength: 110 })
    await fc.assert(fc.asyncProperty(rows, check), { numRuns: 60 })
    const id = (n: number) => `01890a5d-ac96-774b-bcce-${String(n).padStart(12, '0')}`
    const names = ['', ' ', '"', '\\', "'", '{}', '{a,b}', ',', 'null', 'NULL', 'کُرتا 🧵', '\u2028', '\u0001']
    await check(names.map((name, n) => ({ id: id(n), name, amount: n })))
  })

  it('write all or nothing', async ({ testDatabase: { database } }) => {
    await database.transaction((tx) => sql`delete from t`.execute(tx))
    const rows = Array.from({ length: 61 }, (_, n) => ({
      id: `01890a5d-ac96-774b-bcce-${String(n % 60).padStart(12, '0')}`,
      name: null,
      amount: n,
    }))
    const error = await database.writeAtOnce(...insert(dialect, rows)).catch((reason: unknown) => reason)
    assert.is(database.faultOf(error)?.kind, 'unique')
    assert.equal((await sql`select 1 from t`.execute(database.reader)).rows, [])
  })

  it.run()
}
