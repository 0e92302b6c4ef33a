import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sealName, sealText, storeSeals } from '../../server/ledger/seals/stored-seals.service.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { type Books, openBooks } from './books.ts'
import { APP_KEY } from './run-affiliate.ts'

for (const dialect of testDialects()) {
  const it = suite<{ books: Books }>(`the journal by command on ${dialect}`)
  it.before.each(async (context) => {
    context.books = await openBooks(dialect)
  })
  it.after.each(({ books }) => books?.market.close())

  it('is compared with the seals in SEAL_STORAGE', async ({ books }) => {
    const SEAL_STORAGE = mkdtempSync(join(tmpdir(), 'affiliate-kept-seals-'))
    try {
      const against = ['ledger', 'verify', '--against', 'storage']
      const verify = () => books.affiliate(against, { SEAL_STORAGE })
      await books.refuses(against, /SEAL_STORAGE is not set/)
      await books.says(['ledger', 'seal'])
      const { platform } = books.market
      await storeSeals({ ...platform, config: { ...platform.config, SEAL_STORAGE } })
      const clean = await verify()
      assert.is(clean.code, 0, clean.stderr)
      assert.match(clean.stdout, /as-stored\t1\t0\t/)
      // As if seal 2 had been stored before the database was put back to an earlier state.
      const second = {
        position: 2,
        sealedAt: Date.now(),
        digest: `${platform.keys.current.id}.${'0'.repeat(64)}`,
      }
      writeFileSync(join(SEAL_STORAGE, sealName(2)), sealText(second))
      const rolledBack = await verify()
      assert.is(rolledBack.code, 1)
      assert.match(rolledBack.stderr, /^affiliate: The books do not hold: as-stored; rows: seal 2\n$/)
      assert.match(rolledBack.stdout, /seal 2: the seal storage holds it, and the database ends with seal 1/)
    } finally {
      rmSync(SEAL_STORAGE, { recursive: true })
    }
  })

  it('retires a replaced key, and refuses commands that still run with it', async ({ books }) => {
    const keys = { APP_KEY: Buffer.alloc(32, 42).toString('base64'), APP_KEYS_FORMER: APP_KEY }
    const preview = await books.affiliate(['keys', 'rotate', '--dry-run'], keys)
    assert.match(preview.stdout, /Former key [0-9a-f]{8} would be retired\./)
    const made = await books.affiliate(['keys', 'rotate'], keys)
    assert.is(made.code, 0, made.stderr)
    assert.match(made.stdout, /Former key [0-9a-f]{8} is retired: the journal takes nothing more/)
    assert.match(made.stdout, /"affiliate ledger verify" needs them for the journal entries/)
    const retired = /^affiliate: setting APP_KEY: was retired by seal \d+: set the key that replaced it\n$/
    await books.refuses(['payouts', 'run', '--yes'], retired)
    assert.is((await books.affiliate(['ledger', 'verify'], keys)).code, 0)
    const { APP_KEY: alone } = keys
    const missing = await books.affiliate(['ledger', 'verify'], { APP_KEY: alone })
    assert.is(missing.code, 1)
    assert.match(missing.stderr, /do not hold: keys-at-hand, [a-z, -]+; rows: (key [0-9a-f]{8}(, )?)+\n$/)
  })

  it.run()
}
