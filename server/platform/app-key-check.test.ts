import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, testDialects } from '../proof/testbed/databases.ts'
import { checkAppKey } from './app-key-check.ts'
import { SettingError } from './config.ts'
import { createAppKeys } from './key-ring.ts'
import { createVault } from './vault.ts'

for (const dialect of testDialects()) {
  const it = suite(`the key of a database on ${dialect}`)

  it('is fixed by the first start, also of two at once, and no other is taken afterwards', async () => {
    const { database, close } = await openTestDatabase(dialect)
    try {
      const right = createVault(createAppKeys(Buffer.alloc(32, 1)))
      await Promise.all([checkAppKey(database, right), checkAppKey(database, right)])
      await checkAppKey(database, right)
      const refused = await checkAppKey(database, createVault(createAppKeys(Buffer.alloc(32, 2)))).catch(
        (error) => error,
      )
      assert.instance(refused, SettingError)
      assert.match(refused.message, /^setting APP_KEY: /)
    } finally {
      await close()
    }
  })

  it.run()
}
