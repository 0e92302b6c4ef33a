// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { migrationsFor } from '../../migrations/index.ts'
import { migrationNames } from './migration-state.ts'

test('every migration has a file of its name, and every file is a migration', () => {
  for (const dialect of ['sqlite', 'postgresql'] as const) {
    assert.equal(
      migrationNames(),
      migrationsFor(dialect).map(({ name }) => name),
    )
  }
})

test.run()
