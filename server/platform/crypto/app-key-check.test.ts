import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../../test/testkit/databases.ts'
import { sealUnbound, unboundMark } from '../../test/testkit/unbound-values.ts'
import { SettingError } from '../config.ts'
import { checkAppKey } from './app-key-check.ts'
import { isJournalUnkeyed, markJournalKeyed, openSealed, readKeyMark, renewMark } from './key-mark.ts'
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

  const keyOf = async ({ database }: TestDatabase, vault = first) =>
    (await readKeyMark(database.reader, vault))?.key ?? 'absent'
  const leaveUnboundMark = ({ database }: TestDatabase) =>
    database.transaction((tx) => tx.insertInto('watermarks').values(unboundMark(ONE)).execute())

  it('is fixed by the first start, also of two at once, and no other is taken afterwards', async (context) => {
    const { database } = context
    assert.is(await keyOf(context), 'absent')
    await Promise.all([checkAppKey(database, first), checkAppKey(database, first)])
    await checkAppKey(database, first)
    assert.equal(await readKeyMark(database.reader, first), { key: 'current', accepts: [] })
    const refused = await checkAppKey(database, second).catch((error) => error)
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
    await database.transaction((tx) => renewMark(tx, rotated, 'unbound_values'))
    assert.is(await keyOf(context, rotated), 'current')
    assert.is(await keyOf(context, second), 'current')
    assert.is(await keyOf(context, first), 'foreign')
  })

  it('lets in what an older database holds while its mark stands, each until it is ended, and never afterwards', async (context) => {
    const { database } = context
    const { reader } = database
    const sealed = sealUnbound(ONE, 'secret', 'store')
    const open = (vault = first) => openSealed(reader, vault, sealed, BINDING)
    const refused = async () => {
      assert.instance(await open().catch((error: unknown) => error), IntegrityError)
      assert.not.ok(await isJournalUnkeyed(reader, first))
    }

    await refused()
    await leaveUnboundMark(context)
    await checkAppKey(database, first)
    assert.equal((await readKeyMark(reader, first))?.accepts, ['unbound_values', 'unkeyed_journal'])
    assert.ok(await isJournalUnkeyed(reader, first))
    assert.instance(await open(rotated).catch((error: unknown) => error), IntegrityError)
    await database.transaction((tx) => markJournalKeyed(tx, first))
    assert.not.ok(await isJournalUnkeyed(reader, first))
    assert.is(await open(), 'secret')
    await database.transaction((tx) => renewMark(tx, first, 'unbound_values'))
    await refused()

    const setMark = (value: string) =>
      database.transaction((tx) =>
        tx.updateTable('watermarks').set({ value }).where('name', '=', 'app_key').execute(),
      )
    const bound = first.seal('unbound_values unkeyed_journal', BINDING)
    for (const forged of [
      sealUnbound(ONE, 'another text', 'app key check'),
      sealed,
      bound,
      'v1.',
      'v1',
      '',
    ]) {
      await setMark(forged)
      await refused()
      assert.is(await keyOf(context), 'foreign')
    }
    await database.transaction((tx) => tx.deleteFrom('watermarks').where('name', '=', 'app_key').execute())
    await refused()
    await checkAppKey(database, first)
    assert.is(await keyOf(context), 'current')
    await refused()
  })

  it('refuses an old mark once the key was replaced, also while the old key is a former one', async (context) => {
    const { database } = context
    await leaveUnboundMark(context)
    assert.is(await keyOf(context), 'current')
    assert.is(await keyOf(context, rotated), 'foreign')
    await database.transaction((tx) => markJournalKeyed(tx, first))
    assert.equal(await readKeyMark(database.reader, rotated), { key: 'foreign', accepts: [] })
    const refused = await checkAppKey(database, rotated).catch((error) => error)
    assert.match(refused.message, /affiliate keys rotate/)
  })

  it.run()
}
