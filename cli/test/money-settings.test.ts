import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { proofDialects } from '../../server/test/testkit/proof-size.ts'
import { columnsOf } from '../../server/test/testkit/rows.ts'
import { openServiceBed, type ServiceBed } from '../../server/test/testkit/service-bed.ts'
import { runHere } from './run-here.ts'

for (const dialect of proofDialects()) {
  const it = suite(`commands beside a service with other money settings on ${dialect}`)
  let bed: ServiceBed
  it.before(async () => {
    bed = await openServiceBed(dialect)
  })
  it.after(() => bed.close())

  const run = (args: string[], settings: Record<string, string> = {}) =>
    runHere([...args, '--yes'], {
      DATABASE_URL: bed.testDatabase.url,
      DATA_DIR: bed.testDatabase.folder,
      APP_KEY: '',
      ...settings,
    })

  it('move no money, and name the setting', async () => {
    for (const args of [
      ['payouts', 'run'],
      ['billing', 'close'],
    ]) {
      const refused = await run(args, { PAYOUT_THRESHOLD: '1.00' })
      assert.is(refused.code, 1, args.join(' '))
      assert.match(refused.stderr, /setting PAYOUT_THRESHOLD: is 1\.00 here and 1000\.00 in process \d+/)
      assert.is((await run(args)).code, 0)
    }
    assert.is((await run(['payouts', 'list'], { PAYOUT_THRESHOLD: '1.00' })).code, 0)
  })

  it('move money with changed settings when no process runs, which is audited unless it is a dry run', async () => {
    const changes = () =>
      columnsOf(bed.testDatabase, 'audit_entries', ['after'], { action: 'settings.change' })
    await bed.service.stop()
    const changed = { PAYOUT_THRESHOLD: '1.00' }
    assert.is((await run(['payouts', 'run', '--dry-run'], changed)).code, 0)
    assert.equal(await changes(), [])
    assert.is((await run(['payouts', 'run'], changed)).code, 0)
    assert.is((await run(['billing', 'close'], changed)).code, 0)
    const [entry, ...others] = await changes()
    assert.equal(others, [])
    assert.is(JSON.parse(entry?.after ?? '{}').PAYOUT_THRESHOLD, 100)
  })

  it.run()
}
