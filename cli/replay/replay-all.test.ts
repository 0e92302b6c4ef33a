// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../../server/test/testkit/databases.ts'
import { assertNone } from '../../server/test/testkit/pluck.ts'
import { startQuietly } from '../../server/test/testkit/service-bed.ts'
import { runHere } from '../test/run-here.ts'
import { readFixtures } from './fixture-files.ts'

for (const dialect of testDialects()) {
  const it = suite(`webhooks replay --all on ${dialect}`)
  let database: TestDatabase
  let settings: Record<string, string>
  let running: Awaited<ReturnType<typeof startQuietly>>

  it.before(async () => {
    database = await openTestDatabase(dialect, { migrated: false })
    settings = { DATABASE_URL: database.url, DATA_DIR: database.folder, APP_KEY: '' }
    const seeded = await runHere(['seed'], settings)
    assert.is(seeded.code, 0, seeded.stderr)
    running = await startQuietly(settings)
  })
  it.after(async () => {
    await running.service.stop()
    await database.close()
  })

  it('sends every fixture on a seeded database, twice, and the books hold', async () => {
    const { storeSales, processor } = await readFixtures()
    for (let run = 0; run < 2; run += 1) {
      const args = ['webhooks', 'replay', '--all', '--json', '--url', running.url]
      const { code, stdout, stderr } = await runHere(args, settings)
      assert.is(code, 0, stderr)
      const { items, skipped } = JSON.parse(stdout)
      assert.equal([items.length, skipped], [storeSales.length + processor.length, []])
      assertNone(items, ({ as_expected }: { as_expected: boolean }) => !as_expected)
    }
    const verified = await runHere(['ledger', 'verify', '--full'], settings)
    assert.is(verified.code, 0, verified.stdout)
  })

  it.run()
}
