import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { type RawBuilder, sql } from 'kysely'
import { Client } from 'pg'
import { suite, type Test } from 'uvu'
import * as assert from 'uvu/assert'
import type { SystemPostgres } from '../../scripts/testing/system-postgres.ts'
import { migrationState } from '../../server/platform/database/migration-state.ts'
import { openDatabase } from '../../server/platform/database/open-database.ts'
import { changedTables, tableDigests } from '../../server/test/authorization/digest.ts'
import type { TestDialect } from '../../server/test/testkit/databases.ts'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { type FilledMarket, openFilledMarket } from '../../server/test/testkit/filled-market.ts'
import { administer } from '../../server/test/testkit/migrated-databases.ts'
import { assertNone } from '../../server/test/testkit/pluck.ts'
import { call, startQuietly } from '../../server/test/testkit/service-bed.ts'
import { addServiceRole } from '../../server/test/testkit/service-role.ts'
import { removeGuards } from '../../server/test/testkit/tamper.ts'
import { backUp } from '../backup/backup.ts'
import { isAlive, startAffiliate } from './run-affiliate.ts'
import { type EndedHere, runHere } from './run-here.ts'
import { openSmallDisk } from './small-disk.ts'

const ONE_LINE = /^affiliate: [^\n]*\n$/
const WRONG_KEY = 'a wrong key'
const COMPARED = ['ledger_entries', 'ledger_postings', 'payouts', 'credits', 'clicks'] as const

export interface World {
  filled: FilledMarket
  /** A backup of its database, as `db backup` makes it. */
  backup: string
  affiliate(args: string[], settings?: Record<string, string>): Promise<EndedHere>
  /** Every file in the folder, and every database on the server. */
  places(): Promise<string[]>
  /** Removes what commands have made. */
  clear(): Promise<void>
}

async function databasesOn(url: string): Promise<string[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query('select datname from pg_database order by 1')
  await client.end()
  return rows.map(({ datname }) => datname)
}

async function openWorld(dialect: TestDialect, system: SystemPostgres | null): Promise<World> {
  const filled = await openFilledMarket(dialect)
  const backup = join(filled.folder, 'a backup')
  const made = await backUp(filled.database, backup)
  assert.is(made.restore, `affiliate db restore '${backup}'`)
  const own = new URL(filled.url).pathname.slice(1)
  const databases = async () => (system ? await databasesOn(system.url) : [])
  const files = () => fs.readdirSync(filled.folder).filter((name) => !/-(wal|shm)$/.test(name))
  const atFirst = files()
  return {
    filled,
    backup,
    affiliate: (args, settings = {}) =>
      runHere(args, { DATABASE_URL: filled.url, APP_KEY: filled.appKey, ...settings }),
    places: async () => [...files(), ...(await databases())],
    async clear() {
      for (const name of files())
        if (!atFirst.includes(name)) fs.rmSync(join(filled.folder, name), { recursive: true })
      for (const name of await databases())
        if (name.startsWith(`${own}_`)) await administer(`drop database "${name}" with (force)`)
    },
  }
}

const addMigration = (name: string) => sql`insert into mikro_orm_migrations (name) values (${name})`
const removeMigration = (name: string) => sql`delete from mikro_orm_migrations where name = ${name}`

/** A backup of the database after `change`, which `undo` takes back. */
async function backUpWith(
  { filled: { database }, backup }: World,
  change: RawBuilder<unknown>,
  undo: RawBuilder<unknown>,
): Promise<string> {
  await change.execute(database.writer)
  const { file } = await backUp(database, `${backup}.changed`)
  await undo.execute(database.writer)
  return file
}

/** `system`: the PostgreSQL to test with, which is closed afterwards; `null` for SQLite. */
export function testRestore(dialect: TestDialect, system: SystemPostgres | null): Test<World> {
  const it = suite<World>(`db restore on ${dialect}`)
  it.before(async (world) => {
    Object.assign(world, await openWorld(dialect, system))
  })
  it.after.each(({ clear }) => clear())
  it.after(async ({ filled }) => {
    await filled.close()
    await system?.close()
  })

  it('makes a verified copy of this version, and its commands put it in place', async () => {
    // The copy takes the place of its database.
    const { filled, backup, affiliate, clear } = await openWorld(dialect, system)
    const { database, url } = filled
    const before = await tableDigests(database.reader)
    const { executed, pending } = await migrationState(database)
    const { code, stdout, stderr } = await affiliate(['db', 'restore', backup, '--json'])
    assert.is(code, 0, stderr)
    const restored = JSON.parse(stdout)
    assert.equal([restored.ok, restored.migrated], [true, pending])
    assert.ok(restored.invariants.length > 30)
    assert.equal((await migrationState(database)).executed, executed)
    await database.close()
    for (const command of restored.swap_commands) execFileSync('sh', ['-c', command], { stdio: 'pipe' })
    const more = { DATABASE_URL: url, DATA_DIR: filled.folder, APP_KEY: filled.appKey, ROLES: 'web' }
    const { service, url: address } = await startQuietly(more)
    try {
      assert.equal(service.migrated, [])
      assert.is((await call(address, 'GET', '/readyz')).status, 200)
      const changed = changedTables(before, await tableDigests(service.app.database.reader))
      assertNone(COMPARED, (table) => changed.includes(table))
    } finally {
      await service.stop()
      await clear()
      await filled.close()
    }
  })

  it('refuses a target that exists, and keeps it as it is', async ({ filled, backup, affiliate, places }) => {
    const restore = (...more: string[]) => affiliate(['db', 'restore', backup, ...more])
    assert.is((await restore()).code, 0)
    const before = await places()
    const again = await restore()
    assert.is(again.code, 1)
    assert.match(again.stderr, ONE_LINE)
    assert.match(again.stderr, /already.*--to/)
    assert.equal(await places(), before)
    const own = new URL(filled.url).pathname.slice(1)
    const named = await restore('--to', system ? `${own}_another` : join(filled.folder, 'another.db'))
    assert.is(named.code, 0, named.stderr)
    assert.is((await places()).length, before.length + 1)
  })

  it('deletes the copy of a drill once it is verified', async ({ backup, affiliate, places }) => {
    const before = await places()
    const drill = await affiliate(['db', 'restore', backup, '--discard'])
    assert.is(drill.code, 0, drill.stderr)
    assert.match(drill.stdout, /checked [1-9]\d* rows, and deleted the copy\.\nAll \d+ invariants hold\.\n$/)
    assert.equal(await places(), before)
    assert.is((await affiliate(['db', 'restore', backup, '--discard', '--to', 'x'])).code, 2)
  })

  /** A file made from the bytes of the backup. */
  const changed =
    (change: (bytes: Buffer) => Buffer | string) =>
    ({ backup }: World) => {
      fs.writeFileSync(`${backup}.changed`, change(fs.readFileSync(backup)))
      return `${backup}.changed`
    }
  const withMigration = (name: string) => (world: World) =>
    backUpWith(world, addMigration(name), removeMigration(name))
  const refused: [what: string, says: RegExp, make: (world: World) => Promise<string> | string][] = [
    [
      'half a file',
      /pg_restore: error|is damaged/,
      changed((bytes) => bytes.subarray(0, Math.floor(bytes.length / 2))),
    ],
    [
      'a file whose bytes were changed',
      // Some damage ends pg_restore by a signal.
      /pg_restore: error|failed: ended by SIG|is damaged/,
      changed((bytes) => {
        // Over the start of a page in the middle, or over what compressed rows there are.
        const middle = Math.floor(bytes.length / 2 / 4096) * 4096
        return bytes.fill(0xa5, middle, middle + 8192)
      }),
    ],
    ['a file that is no backup', /is not a backup of this service/, changed(() => 'SQL'.repeat(1000))],
    [
      "the other database's backup",
      /is a backup of (SQLite|PostgreSQL), but DATABASE_URL names (SQLite|PostgreSQL)/,
      changed(() => (dialect === 'sqlite' ? 'PGDMP\x01\x0e' : 'SQLite format 3\0')),
    ],
    [WRONG_KEY, /setting APP_KEY: /, ({ backup }) => backup],
    [
      'a backup of a newer version',
      /was made by a newer version .*99999-later/,
      withMigration('99999-later'),
    ],
    ['a backup made before 0.2.0', /was made before version 0\.2\.0/, withMigration('00002-guards')],
    [
      'a database of another program',
      /is not a backup of this service: it has no migrations/,
      (world) =>
        backUpWith(
          world,
          sql`alter table mikro_orm_migrations rename to theirs`,
          sql`alter table theirs rename to mikro_orm_migrations`,
        ),
    ],
    ['a file that does not exist', /cannot read .*ENOENT/, ({ backup }) => `${backup}.none`],
  ]
  for (const [what, says, make] of refused) {
    it(`refuses ${what} in one line and leaves nothing behind`, async (world) => {
      const file = await make(world)
      const before = await world.places()
      const APP_KEY = what === WRONG_KEY ? Buffer.alloc(32, 8).toString('base64') : world.filled.appKey
      const ended = await world.affiliate(['db', 'restore', file], { APP_KEY })
      assert.equal([ended.code, ended.stdout], [1, ''], ended.stderr)
      assert.match(ended.stderr, ONE_LINE)
      assert.match(ended.stderr, says)
      assert.equal(await world.places(), before)
    })
  }

  it('keeps a copy whose books do not hold, names what is broken, and gives no way to switch', async (world) => {
    const { filled, affiliate, places } = world
    await removeGuards(filled.database)
    const more = (paisa: number) =>
      sql`update sales set commission = commission + ${paisa} where acceptance_status = 'accepted'`
    const file = await backUpWith(world, more(1), more(-1))
    const before = await places()
    const ended = await affiliate(['db', 'restore', file])
    assert.is(ended.code, 1)
    assert.match(ended.stderr, /The books of the backup do not hold: .*ledger verify --database-url/)
    assert.not.match(ended.stdout, /rename|mv |DATABASE_URL/)
    assert.is((await places()).length, before.length + 1)
    const drill = await affiliate(['db', 'restore', file, '--discard'])
    assert.is(drill.code, 1)
    assert.match(
      drill.stderr,
      /^affiliate: The books of the backup do not hold: .*without --discard[^\n]*\n$/,
    )
    assert.is((await places()).length, before.length + 1)
  })

  it('that is interrupted leaves nothing behind', async (world) => {
    const { filled, backup, places } = world
    const environment = { DATABASE_URL: filled.url, APP_KEY: filled.appKey }
    if (dialect === 'sqlite') {
      // So much that copying it has a middle.
      const big = await openDatabase(`sqlite:${backup}`, { create: false })
      await sql`create table ballast as select zeroblob(200000000)`.execute(big.writer)
      await big.close()
      const before = await places()
      const command = startAffiliate(['db', 'restore', backup], { environment, folder: filled.folder })
      const draft = join(filled.folder, `affiliate-restored.db.${command.child.pid}.tmp`, 'draft')
      await command.until(() => (fs.statSync(draft, { throwIfNoEntry: false })?.size ?? 0) > 0)
      const { code } = await command.interrupt()
      assert.equal([code, await places()], [130, before])
      return
    }
    // The real program reads the archive; the one that would load it never ends.
    const tools = join(filled.folder, 'tools')
    const tool = join(tools, 'pg_restore')
    fs.mkdirSync(tools)
    const real = `${system?.programs}/pg_restore`
    fs.writeFileSync(
      tool,
      `#!/bin/sh\ncase "$*" in *--schema-only*) exec ${real} "$@";; esac\necho $$ > "$0.pid"\nexec sleep 600\n`,
    )
    fs.chmodSync(tool, 0o700)
    const before = await places()
    const command = startAffiliate(['db', 'restore', backup], {
      environment: { ...environment, PATH: `${tools}:${process.env.PATH}` },
      folder: filled.folder,
    })
    await command.until(() => fs.existsSync(`${tool}.pid`) && fs.readFileSync(`${tool}.pid`, 'utf8') !== '')
    assert.ok((await places()).length > before.length)
    const { code, stderr } = await command.interrupt()
    assert.equal([code, stderr, await places()], [130, '', before])
    const pid = Number(fs.readFileSync(`${tool}.pid`, 'utf8'))
    await eventually(() => !isAlive(pid))
  })

  if (dialect === 'sqlite') {
    const disk = openSmallDisk(1)
    if (disk === null) it.skip('this user can mount no small file system here to be filled', () => {})
    else {
      it('onto a full disk is refused in one line and leaves nothing behind', async (world) => {
        try {
          disk.fill()
          const before = fs.readdirSync(disk.folder)
          const target = join(disk.folder, 'restored.db')
          const ended = await world.affiliate(['db', 'restore', world.backup, '--to', target])
          assert.equal([ended.code, ended.stdout], [1, ''])
          assert.match(ended.stderr, ONE_LINE)
          assert.match(ended.stderr, /disk is full|ENOSPC/i)
          assert.equal(fs.readdirSync(disk.folder), before)
        } finally {
          await disk.close()
        }
      })
    }
  } else {
    it('says what is missing: a privilege of the role, and pg_restore', async (world) => {
      const before = await world.places()
      for (const [settings, says] of [
        [{ DATABASE_URL: await addServiceRole(world.filled.url) }, /role lacks a privilege.*--database-url/],
        [{ PATH: world.filled.folder }, /pg_restore is not on PATH\. Install PostgreSQL's client tools\./],
      ] as const) {
        const ended = await world.affiliate(['db', 'restore', world.backup], settings)
        assert.equal([ended.code, await world.places()], [1, before])
        assert.match(ended.stderr, ONE_LINE)
        assert.match(ended.stderr, says)
      }
    })
  }

  return it
}
