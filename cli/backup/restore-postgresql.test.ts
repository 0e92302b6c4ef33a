// proof only
// database: none

import { suite } from 'uvu'
import { openSystemPostgres } from '../../scripts/testing/system-postgres.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { testRestore } from '../test/restore-tests.ts'

const system = testDialects().includes('postgresql') ? await openSystemPostgres() : null
if (system === null) {
  const it = suite('db restore on postgresql')
  it.skip('no PostgreSQL with pg_dump and pg_restore is installed in /usr/lib/postgresql', () => {})
  it.run()
} else {
  // The server of the test run brings no pg_dump, and the installed one may refuse its version.
  process.env.TEST_POSTGRES_URL = system.url
  process.env.PATH = `${system.programs}:${process.env.PATH}`
  const it = testRestore('postgresql', system)
  it.run()
}
