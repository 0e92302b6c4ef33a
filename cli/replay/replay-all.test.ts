// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Service, startService } from '../../server/service.ts'
import { openTestDatabase, type TestDatabase, testDialects } from '../../server/test/testkit/databases.ts'
import { runHere } from '../test/run-here.ts'
import { readFixtures } from './fixture-files.ts'

interface World {
  database: TestDatabase
  settings: Record<string, string>
  service: Service
}

for (const dialect of testDialects()) {
  const it = suite<World>(`webhooks replay --all on ${dialect}`)

  it.before(async (world) => {
    world.database = await openTestDatabase(dialect, { migrated: false })
    world.settings = { DATABASE_URL: world.database.url, DATA_DIR: world.database.folder, APP_KEY: '' }
    const seeded = await runHere(['seed'], world.settings)
    assert.is(seeded.code, 0, seeded.stderr)
    const environment = { ...world.settings, HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'silent' }
    world.service = await startService({ environment })
  })
  it.after(async ({ service, database }) => {
    await service.stop()
    await database.close()
  })

  it('sends every fixture on a seeded database, twice, and the books hold', async (world) => {
    const { settings, service } = world
    const { storeSales, processor } = await readFixtures()
    for (let run = 0; run < 2; run += 1) {
      const args = ['webhooks', 'replay', '--all', '--json', '--url', service.url ?? '']
      const { code, stdout, stderr } = await runHere(args, settings)
      assert.is(code, 0, stderr)
      const { items, skipped } = JSON.parse(stdout)
      const unmet = items.filter((item: { as_expected: boolean }) => !item.as_expected)
      assert.equal([items.length, skipped, unmet], [storeSales.length + processor.length, [], []])
    }
    const verified = await runHere(['ledger', 'verify', '--full'], settings)
    assert.is(verified.code, 0, verified.stdout)
  })

  it.run()
}
