// long
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase } from '../../server/test/testkit/databases.ts'
import { assertMapped, pluck } from '../../server/test/testkit/pluck.ts'
import { proofDialects } from '../../server/test/testkit/proof-size.ts'
import { PRODUCTION } from '../test/run-affiliate.ts'
import { runHere } from '../test/run-here.ts'

for (const dialect of proofDialects()) {
  const it = suite(`affiliate seed on ${dialect}`)
  let database: TestDatabase
  let settings: Record<string, string>

  it.before(async () => {
    database = await openTestDatabase(dialect, { migrated: false })
    settings = { DATABASE_URL: database.url, DATA_DIR: database.folder }
  })
  it.after(() => database.close())

  it('fills an empty database with accounts, links, clicks and a week of sales, in sound books', async () => {
    const seeded = await runHere(['seed', '--json'], settings)
    assert.is(seeded.code, 0, seeded.stderr)
    const { accounts, slugs, orders, clicks } = JSON.parse(seeded.stdout)
    assertMapped(accounts, ({ role }: { role: string }) => role, ['merchant', 'creator', 'creator', 'admin'])
    assert.equal([slugs.length, orders, clicks], [3, 18, 84])
    const { items } = JSON.parse((await runHere(['sales', 'list', '--json'], settings)).stdout)
    assert.is(items.length, orders)
    const reasons = pluck(items, 'rejection_reason')
    for (const reason of [null, 'test_order', 'not_paid', 'currency_not_pkr', 'self_purchase'])
      assert.ok(reasons.includes(reason), String(reason))
    const now = Date.now()
    for (const { created_at, ordered_at } of items) {
      assert.ok(Date.parse(created_at) < now && Date.parse(ordered_at) < now, created_at)
      assert.ok(now - Date.parse(created_at) < 8 * 86_400_000, created_at)
    }
    const verified = await runHere(['ledger', 'verify', '--full'], settings)
    assert.is(verified.code, 0, verified.stdout)
  })

  it('refuses a database with accounts, and production', async () => {
    for (const [environment, why] of [
      [settings, /^affiliate: Refused: the database has accounts, .*\n$/],
      [{ ...settings, ...PRODUCTION }, /^affiliate: .*production.*\n$/],
    ] as const) {
      const { code, stderr } = await runHere(['seed'], environment)
      assert.is(code, 1)
      assert.match(stderr, why)
    }
  })

  it.run()
}
