// proof only
import * as fs from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { rowsOf } from '../../server/test/testkit/rows.ts'
import { suiteOverBooks } from './books.ts'
import { APP_KEY, isAlive, type RunningAffiliate, startAffiliate } from './run-affiliate.ts'
import { holdsWriteLock, makeStuck } from './stuck-table.ts'

/** What reads for long, each with a table that it comes to in the middle of its work, and never gets past before Ctrl-C. */
const LONG: Record<string, { args: string[]; at: string }> = {
  'ledger verify': { args: [], at: 'payouts' },
  'ledger statement': { args: ['platform'], at: 'sales' },
  'webhooks reprocess': { args: ['--dry-run'], at: 'inbound_bodies' },
}
/** Empty when it is gone by now. */
function linkTarget(path: string): string {
  try {
    return fs.readlinkSync(path)
  } catch {
    return ''
  }
}

for (const dialect of testDialects()) {
  const { it, books } = suiteOverBooks(`Ctrl-C on ${dialect}`, dialect)
  const onSqlite = dialect === 'sqlite' ? it : () => undefined
  const onPostgresql = dialect === 'postgresql' ? it : () => undefined
  /** Where the commands put what they cannot keep in memory. */
  let temporary: string
  it.before(() => {
    temporary = fs.mkdtempSync(join(books.market.bed.testDatabase.folder, 'temporary-'))
  })

  const startWith = (settings: Record<string, string>, args: string[]): RunningAffiliate => {
    const { url, folder } = books.market.bed.testDatabase
    const environment = { DATABASE_URL: url, DATA_DIR: folder, APP_KEY, TMPDIR: temporary, ...settings }
    return startAffiliate(args, { environment, folder })
  }
  const start = (...args: string[]) => startWith({}, args)

  /** On SQLite no one waits, so it is what a process has open that tells how far it is. */
  const isAtWork = ({ child }: RunningAffiliate) => {
    const folder = `/proc/${child.pid}/fd`
    if (!fs.existsSync(folder)) return true
    const targets = fs.readdirSync(folder).map((name) => linkTarget(join(folder, name)))
    return targets.some((target) => target.endsWith('affiliate.db'))
  }

  for (const [name, { args, at }] of Object.entries(LONG)) {
    it(`ends "${name}" at once, leaves nothing behind, and the same again does it all`, async () => {
      const { testDatabase } = books.market.bed
      const words = [...name.split(' '), ...args, '--json']
      const table = await makeStuck(testDatabase, at)
      try {
        const command = start(...words)
        if (dialect === 'postgresql') await table.waitedFor()
        else await command.until(() => isAtWork(command))
        const { code, stdout, stderr } = await command.interrupt()
        assert.equal([code, stdout, stderr], [130, '', ''])
        assert.equal(fs.readdirSync(temporary), [])
      } finally {
        await table.letGo()
      }
      const again = await books.affiliate(words)
      assert.equal([again.code, again.stderr], [0, ''])
      JSON.parse(again.stdout)
    })
  }

  onSqlite('in the middle of a page of a close leaves none of it, and the next close goes on', async () => {
    const { market } = books
    const creator = await market.addCreator('Bilal')
    for (let at = 0; at < 7; at += 1) {
      const shop = await market.addShop(`Shop ${at}`)
      await market.order(shop, await market.addLink(shop, creator), 100_000)
    }
    await market.drainUntilIdle()
    const { writer } = market.bed.testDatabase.database
    const closed = async () => (await rowsOf(market.platform, 'billing_cycles', { state: 'closed' })).length
    // The fourth of the page never ends, so that whenever the signal comes, it is in the middle.
    const many = sql.raw([...'abcdefghi'].map((name) => `sqlite_schema as ${name}`).join(', '))
    await sql`create trigger never_ends after update on billing_cycles
      when (select count(*) from billing_cycles where state = 'closed') = 4
      begin select count(*) from ${many}; end`.execute(writer)
    const args = ['billing', 'close', '--as-of', '2099-01-01', '--yes']
    const command = start(...args)
    await command.until(() => holdsWriteLock(market.bed.testDatabase.folder))
    const { code } = await command.interrupt()
    await sql`drop trigger never_ends`.execute(writer)
    assert.equal([code, await closed()], [130, 0])
    await market.verify()
    const { items } = await books.json(...args)
    assert.equal([items.length, await closed()], [8, 8])
    await market.verify()
  })

  /** What is there of a backup, whole or not. */
  const backups = () => {
    const names = fs.readdirSync(books.market.bed.testDatabase.folder)
    return names.filter((name) => name.startsWith('backup.db'))
  }

  onPostgresql('in the middle of a backup leaves no half of one behind, nor the tool at work', async () => {
    const { folder } = books.market.bed.testDatabase
    const tool = join(folder, 'pg_dump')
    // In the middle for as long as no one ends it. Its process id tells that it has begun.
    fs.writeFileSync(tool, '#!/bin/sh\nexec 1> "$3"\necho half\necho $$ > "$0.pid"\nexec sleep 600\n')
    fs.chmodSync(tool, 0o700)
    const command = startWith({ PATH: `${folder}:/bin:/usr/bin` }, [
      'db',
      'backup',
      join(folder, 'backup.db'),
    ])
    await command.until(() => fs.existsSync(`${tool}.pid`) && fs.readFileSync(`${tool}.pid`, 'utf8') !== '')
    const { code } = await command.interrupt()
    assert.equal([code, backups()], [130, []])
    const pid = Number(fs.readFileSync(`${tool}.pid`, 'utf8'))
    await eventually(() => !isAlive(pid))
  })

  onSqlite('in the middle of a backup leaves no half of one behind', async () => {
    const { database, folder } = books.market.bed.testDatabase
    const file = join(folder, 'backup.db')
    // So much that copying it has a middle.
    await sql`create table ballast as select zeroblob(100000000)`.execute(database.writer)
    for (let tries = 1; ; tries += 1) {
      const command = start('db', 'backup', file)
      const draft = `${file}.${command.child.pid}.tmp/draft`
      await command.until(
        () => (fs.statSync(draft, { throwIfNoEntry: false })?.size ?? 0) > 0 || fs.existsSync(file),
      )
      const { code } = await command.interrupt()
      if (fs.existsSync(file) && tries < 5) {
        // It was whole before the signal came.
        assert.equal(backups(), ['backup.db'])
        fs.rmSync(file)
        continue
      }
      assert.equal([code, backups()], [130, []])
      break
    }
    await sql`drop table ballast`.execute(database.writer)
  })

  it.run()
}
