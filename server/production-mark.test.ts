import { join } from 'node:path'
import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { PRODUCTION } from '../cli/test/run-affiliate.ts'
import { readConfig, SettingError } from './platform/config.ts'
import { type OpenDatabase, openDatabase } from './platform/database/open-database.ts'
import { withRowKeys } from './platform/database/protected-rows.ts'
import { isProduction, markDevelopment, markProduction, markSeeded } from './production-mark.ts'
import { marketSuites } from './test/testkit/market-suites.ts'
import type { Testbed } from './test/testkit/testbed.ts'

const CONFIG = readConfig(PRODUCTION)

for (const { it, dialect } of marketSuites<{ database: OpenDatabase }>('the mark of production')) {
  it.before.each(async (context) => {
    context.database = context.bed.testDatabase.database
  })

  it('is set by a start of production and stays through development starts', async ({ bed, database }) => {
    await markProduction(database, bed.platform.config)
    assert.is(await isProduction(database.reader), false)
    await markProduction(database, CONFIG)
    await markProduction(database, CONFIG)
    assert.is(await isProduction(database.reader), true)
    await markProduction(database, { ...CONFIG, NODE_ENV: 'development' })
    assert.is(await isProduction(database.reader), true)
  })

  it('is refused on a database that was seeded', async ({ bed, database }) => {
    await markSeeded(database, bed.platform.clock.now())
    const refusal = await markProduction(database, CONFIG).catch((error: unknown) => error)
    assert.instance(refusal, SettingError)
    assert.match((refusal as Error).message, /^setting DATABASE_URL: .*affiliate seed/)
    assert.is(await isProduction(database.reader), false)
    await markProduction(database, bed.platform.config)
  })

  it('refuses a start with the sandbox processor', async ({ bed, database }) => {
    await markProduction(database, CONFIG)
    const refusal = await markProduction(database, bed.platform.config).catch((error: unknown) => error)
    assert.instance(refusal, SettingError)
    assert.match(
      (refusal as Error).message,
      /^setting PROCESSOR: the sandbox is refused on a production database/,
    )
  })

  it('cannot be removed while the service runs or with production settings', async ({ bed, database }) => {
    await markProduction(database, CONFIG)
    const here = await markDevelopment(bed.platform, database).catch((error) => error)
    assert.equal([here.code, /uses this database/.test(here.detail)], ['forbidden', true])
    const settings = await markDevelopment({ ...bed.platform, config: CONFIG }, database).catch(
      (error) => error,
    )
    assert.equal([settings.code, /NODE_ENV is production/.test(settings.detail)], ['forbidden', true])
    assert.is(await isProduction(database.reader), true)
  })

  it('can be removed from a copy, which leaves an audit row', async ({ bed, database }) => {
    await markProduction(database, CONFIG)
    const copy = await copyOf(bed, database)
    const platform = { ...bed.platform, database: withRowKeys(copy, bed.platform.keys) }
    assert.is(await markDevelopment(platform, copy), true)
    assert.is(await isProduction(copy.reader), false)
    assert.is(await markDevelopment(platform, copy), false)
    const audit = await copy.reader.selectFrom('audit_entries').select(['actor', 'action']).execute()
    assert.equal(audit, [{ actor: 'operator', action: 'database.mark_development' }])
    if (dialect === 'sqlite') {
      assert.is(await isProduction(database.reader), true)
      await copy.close()
    }
  })

  /** What a restore gives: the same rows in another database. */
  async function copyOf(bed: Testbed, database: OpenDatabase): Promise<OpenDatabase> {
    if (dialect === 'sqlite') {
      const file = join(bed.testDatabase.folder, 'copy.db')
      await sql`vacuum into ${file}`.execute(database.writer)
      return openDatabase(`sqlite:${file}`, { create: false })
    }
    // A database that is made from a dump has another number than the one that was marked.
    await database.writer
      .updateTable('watermarks')
      .set({ value: '1 1' })
      .where('name', '=', 'production')
      .execute()
    return database
  }

  if (dialect === 'postgresql') {
    it('needs no privileges beyond those of the tables', async ({ database }) => {
      await database.transaction(async (tx) => {
        const role = `plain_${Date.now()}`
        await sql`create role ${sql.id(role)}`.execute(tx)
        await sql`set local role ${sql.id(role)}`.execute(tx)
        const { rows } =
          await sql`select cast(system_identifier as text) as id from pg_control_system()`.execute(tx)
        assert.is(rows.length, 1)
        await sql`reset role`.execute(tx)
        await sql`drop role ${sql.id(role)}`.execute(tx)
      })
    })
  }

  it.run()
}
