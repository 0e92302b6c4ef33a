import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../proof/testbed/databases.ts'
import { sealUnbound, unboundMark } from '../proof/testbed/unbound-values.ts'
import { checkAppKey } from './app-key-check.ts'
import { SettingError } from './config.ts'
import { keyStateOf, openSealed, renewMark } from './key-mark.ts'
import { createAppKey, createAppKeys } from './key-ring.ts'
import { type Binding, createVault, IntegrityError } from './vault.ts'

const ONE = Buffer.alloc(32, 1)
const TWO = Buffer.alloc(32, 2)
const first = createVault(createAppKeys(ONE))
const second = createVault(createAppKeys(TWO))
const rotated = createVault(createAppKeys(TWO, [ONE]))

const BINDING: Binding = { purpose: 'store', row: 'r', owner: 'o', facts: [] }

for (const dialect of testDialects()) {
  const it = suite<TestDatabase>(`the key of a database on ${dialect}`)

  it.before.each(async (context) => {
    Object.assign(context, await openTestDatabase(dialect))
  })
  it.after.each(({ close }) => close())

  const leaveUnboundMark = ({ database }: TestDatabase) =>
    database.transaction((tx) => tx.insertInto('watermarks').values(unboundMark(ONE)).execute())

  it('is fixed by the first start, also of two at once, and no other is taken afterwards', async ({
    database,
  }) => {
    assert.is(await keyStateOf(database.reader, first), 'absent')
    await Promise.all([checkAppKey(database, first), checkAppKey(database, first)])
    await checkAppKey(database, first)
    assert.is(await keyStateOf(database.reader, first), 'current')
    const refused = await checkAppKey(database, second).catch((error) => error)
    assert.instance(refused, SettingError)
    assert.match(refused.message, /^setting APP_KEY: .*APP_KEYS_FORMER$/)
    assert.match(refused.message, createAppKey(ONE).id)
    assert.is(await keyStateOf(database.reader, second), 'foreign')
  })

  it('may be a former one until the mark is renewed, and then the former one no longer opens it', async ({
    database,
  }) => {
    await checkAppKey(database, first)
    await checkAppKey(database, rotated)
    assert.is(await keyStateOf(database.reader, rotated), 'former')
    await database.transaction((tx) => renewMark(tx, rotated))
    assert.is(await keyStateOf(database.reader, rotated), 'current')
    assert.is(await keyStateOf(database.reader, second), 'current')
    assert.is(await keyStateOf(database.reader, first), 'foreign')
  })

  it('lets unbound values in while the mark of the first format stands, and never afterwards', async (context) => {
    const { database } = context
    const { reader } = database
    const sealed = sealUnbound(ONE, 'secret', 'store')
    const open = (vault = first) => openSealed(reader, vault, sealed, BINDING)
    const refused = async (vault = first) =>
      assert.instance(await open(vault).catch((error: unknown) => error), IntegrityError)

    await refused()
    await leaveUnboundMark(context)
    await checkAppKey(database, first)
    assert.is(await keyStateOf(reader, first), 'unbound')
    assert.is(await open(), 'secret')
    assert.is(await open(rotated), 'secret')
    await database.transaction((tx) => renewMark(tx, first))
    await refused()

    const setMark = (value: string) =>
      database.transaction((tx) =>
        tx.updateTable('watermarks').set({ value }).where('name', '=', 'app_key').execute(),
      )
    for (const forged of [sealUnbound(ONE, 'another text', 'app key check'), sealed, 'v1.', 'v1', '']) {
      await setMark(forged)
      await refused()
      assert.is(await keyStateOf(reader, first), 'foreign')
    }
    await database.transaction((tx) => tx.deleteFrom('watermarks').where('name', '=', 'app_key').execute())
    await refused()
    await checkAppKey(database, first)
    assert.is(await keyStateOf(reader, first), 'current')
    await refused()
  })

  it('opens the old mark again, if somebody kept it, only with the old key', async (context) => {
    const { database } = context
    await leaveUnboundMark(context)
    assert.is(await keyStateOf(database.reader, rotated), 'unbound')
    assert.is(await keyStateOf(database.reader, second), 'foreign')
  })

  it.run()
}
