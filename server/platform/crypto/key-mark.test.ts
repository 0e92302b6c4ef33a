import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../../test/testkit/databases.ts'
import { rejectionOf } from '../../test/testkit/rejection.ts'
import { SettingError } from '../config.ts'
import { checkAppKey, readKeyMark, renewMark } from './key-mark.ts'
import { createAppKey, createAppKeys } from './key-ring.ts'
import { createVault } from './vault.ts'

const ONE = Buffer.alloc(32, 1)
const TWO = Buffer.alloc(32, 2)
const first = createVault(createAppKeys(ONE))
const second = createVault(createAppKeys(TWO))
const rotated = createVault(createAppKeys(TWO, [ONE]))

for (const dialect of testDialects()) {
  const it = suite<TestDatabase>(`the key of a database on ${dialect}`)

  it.before(async (context) => {
    Object.assign(context, await openTestDatabase(dialect))
  })
  it.before.each(({ database }) =>
    database.transaction(async (tx) => {
      await tx.deleteFrom('watermarks').where('name', '=', 'app_key').execute()
    }),
  )
  it.after(({ close }) => close())

  const keyOf = async ({ database }: TestDatabase, vault = first) =>
    (await readKeyMark(database.reader, vault)) ?? 'absent'

  it('is fixed by the first start, also of two at once, and no other is taken afterwards', async (context) => {
    const { database } = context
    assert.is(await keyOf(context), 'absent')
    await Promise.all([checkAppKey(database, first), checkAppKey(database, first)])
    await checkAppKey(database, first)
    assert.is(await keyOf(context), 'current')
    const refused = (await rejectionOf(checkAppKey(database, second))) as Error
    assert.instance(refused, SettingError)
    assert.match(refused.message, /^setting APP_KEY: .*APP_KEYS_FORMER$/)
    assert.match(refused.message, createAppKey(ONE).id)
    assert.is(await keyOf(context, second), 'foreign')
  })

  it('may be a former one until the mark is renewed, and then the former one no longer opens it', async (context) => {
    const { database } = context
    await checkAppKey(database, first)
    await checkAppKey(database, rotated)
    assert.is(await keyOf(context, rotated), 'former')
    await database.transaction((tx) => renewMark(tx, rotated))
    assert.is(await keyOf(context, rotated), 'current')
    assert.is(await keyOf(context, second), 'current')
    assert.is(await keyOf(context, first), 'foreign')
  })

  it('is not that of a mark that was changed or came from another place, until the mark is made again', async (context) => {
    const { database } = context
    await checkAppKey(database, first)
    const elsewhere = first.seal('', { purpose: 'store', row: 'r', owner: 'o', facts: [] })
    for (const value of [elsewhere, 'v1.', 'v2', '']) {
      await database.transaction((tx) =>
        tx.updateTable('watermarks').set({ value }).where('name', '=', 'app_key').execute(),
      )
      assert.is(await keyOf(context), 'foreign', value)
      assert.instance(await rejectionOf(checkAppKey(database, first)), SettingError)
    }
    await database.transaction((tx) => tx.deleteFrom('watermarks').where('name', '=', 'app_key').execute())
    await checkAppKey(database, first)
    assert.is(await keyOf(context), 'current')
  })

  it.run()
}
