import { join } from 'node:path'
import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { PRODUCTION } from '../cli/test/run-affiliate.ts'
import { type Config, readConfig, SettingError } from './platform/config.ts'
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

  /** Why a start with these settings is refused. */
  const refusalOf = async (database: OpenDatabase, config: Config) => {
    const refusal = await markProduction(database, config).catch((error: unknown) => error)
    assert.instance(refusal, SettingError)
    return (refusal as SettingError).message
  }

  it('is refused on a database that was seeded', async ({ bed, database }) => {
    await markSeeded(database, bed.platform.clock.now())
    assert.match(await refusalOf(database, CONFIG), /^setting DATABASE_URL: .*affiliate seed/)
    assert.is(await isProduction(database.reader), false)
    await markProduction(database, bed.platform.config)
  })

  it('refuses a start with the sandbox processor', async ({ bed, database }) => {
    await markProduction(database, CONFIG)
    const refusal = /^setting PROCESSOR: the sandbox is refused on a production database/
    assert.match(await refusalOf(database, bed.platform.config), refusal)
  })

  it('cannot be removed while the service runs or with production settings', async ({ bed, database }) => {
    await markProduction(database, CONFIG)
    for (const [config, why] of [
      [bed.platform.config, /uses this database/],
      [CONFIG, /NODE_ENV is production/],
    ] as const) {
      const refusal = await markDevelopment({ ...bed.platform, config }, database).catch((error) => error)
      assert.is(refusal.code, 'forbidden')
      assert.match(refusal.detail, why)
    }
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
    await sql`update watermarks set value = '1 1' where name = 'production'`.execute(database.writer)
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
