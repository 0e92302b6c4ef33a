import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { rejectionOf, transactionFault } from '../../test/testkit/rejection.ts'
import { Refusal } from '../api/refusal.ts'
import { sqliteFileOf } from '../config.ts'
import { migrationState } from './migration-state.ts'
import { openDatabase } from './open-database.ts'

const it = suite<{ folder: string }>('opening a database')

it.before.each((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'affiliate-open-'))
})

it.after.each(({ folder }) => {
  rmSync(folder, { recursive: true, force: true })
})

it('names the file of a sqlite address', () => {
  assert.is(sqliteFileOf('sqlite:./data/a.db'), './data/a.db')
  assert.is(sqliteFileOf('sqlite:/srv/a.db'), '/srv/a.db')
  assert.is(sqliteFileOf('sqlite:///srv/a.db'), '/srv/a.db')
  assert.is(sqliteFileOf('postgres://db/a'), null)
})

it('makes a file and its folders only when it may', async ({ folder }) => {
  const file = join(folder, 'deep', 'er', 'affiliate.db')
  const refusal = await rejectionOf(openDatabase(`sqlite:${file}`, { create: false }))
  assert.instance(refusal, Refusal)
  assert.match((refusal as Refusal).detail, file)
  assert.not.ok(existsSync(join(folder, 'deep')))
  const database = await openDatabase(`sqlite://${file}`, { create: true })
  await database.transaction((tx) => sql`create table t (x)`.execute(tx))
  await database.close()
  assert.ok(existsSync(file))
})

it('can be read before anything was written', async ({ folder }) => {
  const database = await openDatabase(`sqlite:${join(folder, 'new.db')}`, { create: true })
  const { executed, pending } = await migrationState(database)
  assert.equal(executed, [])
  assert.is(pending[0], '00001-initial')
  await database.close()
})

it('calls a file that is no database unavailable', async ({ folder }) => {
  const file = join(folder, 'letter.txt')
  writeFileSync(file, 'Dear Sir or Madam, this is more than a hundred bytes of text. '.repeat(20))
  const database = await openDatabase(`sqlite:${file}`, { create: false })
  assert.is(await transactionFault(database, (tx) => sql`select 1`.execute(tx)), 'unavailable')
  await database.close()
})

it.run()
