// proof only
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { addLink, addLiveOffer } from '../../server/test/testkit/listings.ts'
import { type Books, openBooks } from './books.ts'
import { APP_KEY, isAlive, type RunningAffiliate, startAffiliate } from './run-affiliate.ts'
import { makeStuck } from './stuck-table.ts'

/** What reads for long, each with a table that it comes to in the middle of its work, and never gets past before Ctrl-C. */
const LONG: Record<string, { args: string[]; at: string }> = {
  'ledger verify': { args: [], at: 'payouts' },
  'ledger statement': { args: ['platform'], at: 'sales' },
  'webhooks reprocess': { args: ['--dry-run'], at: 'inbound_bodies' },
}
/** What ends no other way than those do: seen on one database. */
const SHORTER: typeof LONG = {
  'billing close': { args: ['--dry-run', '--as-of', '2099-01-01', '--yes'], at: 'credits' },
  'sales list': { args: ['--limit', '1000'], at: 'sales' },
  status: { args: [], at: 'flags' },
}

/** Empty when it is gone by now. */
function linkTarget(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

/** Whether some process holds the write lock of the SQLite file in `folder`. */
function isWriting(folder: string): boolean {
  const rival = new BetterSqlite(join(folder, 'affiliate.db'), { timeout: 0 })
  try {
    rival.exec('begin immediate; rollback')
    return false
  } catch {
    return true
  } finally {
    rival.close()
  }
}

for (const dialect of testDialects()) {
  const it = suite(`Ctrl-C on ${dialect}`)
  const onSqlite = dialect === 'sqlite' ? it : () => undefined
  const onPostgresql = dialect === 'postgresql' ? it : () => undefined
  let books: Books
  /** Where the commands put what they cannot keep in memory. */
  let temporary: string
  it.before(async () => {
    books = await openBooks(dialect)
    temporary = mkdtempSync(join(books.market.bed.testDatabase.folder, 'temporary-'))
  })
  it.after(() => books.market.close())

  const startWith = (settings: Record<string, string>, args: string[]): RunningAffiliate => {
    const { url, folder } = books.market.bed.testDatabase
    const environment = { DATABASE_URL: url, DATA_DIR: folder, APP_KEY, TMPDIR: temporary, ...settings }
    return startAffiliate(args, { environment, folder })
  }
  const start = (...args: string[]) => startWith({}, args)

  /** On SQLite no one waits, so it is what a process has open that tells how far it is. */
  const isAtWork = ({ child }: RunningAffiliate) => {
    const folder = `/proc/${child.pid}/fd`
    if (!existsSync(folder)) return true
    const targets = readdirSync(folder).map((name) => linkTarget(join(folder, name)))
    return targets.some((target) => target.endsWith('affiliate.db'))
  }

  const reading = dialect === 'sqlite' ? LONG : { ...LONG, ...SHORTER }
  for (const [name, { args, at }] of Object.entries(reading)) {
    it(`ends "${name}" at once, leaves nothing behind, and the same again does it all`, async () => {
      const { testDatabase } = books.market.bed
      const words = [...name.split(' '), ...args, '--json']
      const table = await makeStuck(testDatabase, at)
      try {
        const command = start(...words)
        if (dialect === 'postgresql') await table.waitedFor(1)
        else await command.until(() => isAtWork(command))
        const { code, stdout, stderr } = await command.interrupt()
        assert.equal([code, stdout, stderr], [130, '', ''])
        assert.equal(readdirSync(temporary), [])
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
      const offer = await addLiveOffer(market.platform, shop.actor)
      const link = await addLink(market.platform, shop.actor, creator, offer.id)
      await market.order(shop, link, 100_000)
    }
    await market.drainUntilIdle()
    const { reader, writer } = market.bed.testDatabase.database
    const closed = async () => {
      const rows = await reader
        .selectFrom('billing_cycles')
        .select('id')
        .where('state', '=', 'closed')
        .execute()
      return rows.length
    }
    // The fourth of the page never ends, so that whenever the signal comes, it is in the middle.
    const many = sql.raw(
      'abcdefghi'
        .split('')
        .map((name) => `sqlite_schema as ${name}`)
        .join(', '),
    )
    await sql`create trigger never_ends after update on billing_cycles
      when (select count(*) from billing_cycles where state = 'closed') = 4
      begin select count(*) from ${many}; end`.execute(writer)
    const args = ['billing', 'close', '--as-of', '2099-01-01', '--yes']
    const command = start(...args)
    await command.until(() => isWriting(market.bed.testDatabase.folder))
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
    const names = readdirSync(books.market.bed.testDatabase.folder)
    return names.filter((name) => name.startsWith('backup.db'))
  }

  onPostgresql('in the middle of a backup leaves no half of one behind, nor the tool at work', async () => {
    const { folder } = books.market.bed.testDatabase
    const tool = join(folder, 'pg_dump')
    // In the middle for as long as no one ends it. Its process id tells that it has begun.
    writeFileSync(tool, '#!/bin/sh\nexec 1> "$3"\necho half\necho $$ > "$0.pid"\nexec sleep 600\n')
    chmodSync(tool, 0o700)
    const command = startWith({ PATH: `${folder}:/bin:/usr/bin` }, [
      'db',
      'backup',
      join(folder, 'backup.db'),
    ])
    await command.until(() => existsSync(`${tool}.pid`) && readFileSync(`${tool}.pid`, 'utf8') !== '')
    const { code } = await command.interrupt()
    assert.equal([code, backups()], [130, []])
    const pid = Number(readFileSync(`${tool}.pid`, 'utf8'))
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
        () => (statSync(draft, { throwIfNoEntry: false })?.size ?? 0) > 0 || existsSync(file),
      )
      const { code } = await command.interrupt()
      if (existsSync(file) && tries < 5) {
        // It was whole before the signal came.
        assert.equal(backups(), ['backup.db'])
        rmSync(file)
        continue
      }
      assert.equal([code, backups()], [130, []])
      break
    }
    await sql`drop table ballast`.execute(database.writer)
  })

  it.run()
}
