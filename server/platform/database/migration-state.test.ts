// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { postgresqlMigrations } from '../../migrations/postgresql/index.ts'
import { sqliteMigrations } from '../../migrations/sqlite/index.ts'
import { migrationNames } from './migration-state.ts'

test('every migration has a file of its name, and every file is a migration', () => {
  const namesOf = (migrations: readonly { name: string }[]) => migrations.map(({ name }) => name).sort()
  assert.equal(migrationNames('sqlite'), namesOf(sqliteMigrations))
  assert.equal(migrationNames('postgresql'), namesOf(postgresqlMigrations))
})

test.run()
