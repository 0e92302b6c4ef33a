import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type RawBuilder, sql } from 'kysely'
import { Client } from 'pg'
import { suite, type Test } from 'uvu'
import * as assert from 'uvu/assert'
import { migrationState } from '../../server/platform/database/migration-state.ts'
import { type OpenDatabase, openDatabase } from '../../server/platform/database/open-database.ts'
import { startService } from '../../server/service.ts'
import type { TestDialect } from '../../server/test/testkit/databases.ts'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { type FilledMarket, openFilledMarket } from '../../server/test/testkit/filled-market.ts'
import { administer } from '../../server/test/testkit/migrated-databases.ts'
import { call } from '../../server/test/testkit/service-bed.ts'
import { addServiceRole } from '../../server/test/testkit/service-role.ts'
import { removeGuards } from '../../server/test/testkit/tamper.ts'
import { backUp } from '../backup/backup.ts'
import { isAlive, startAffiliate } from './run-affiliate.ts'
import { type EndedHere, runHere } from './run-here.ts'
import { openSmallDisk } from './small-disk.ts'

const ONE_LINE = /^affiliate: [^\n]*\n$/
const WRONG_KEY = Buffer.alloc(32, 8).toString('base64')
const COMPARED = ['ledger_entries', 'ledger_postings', 'payouts', 'credits', 'clicks'] as const

/** A server with its own pg_dump and pg_restore. */
export interface InstalledPostgres {
  /** Where pg_dump, pg_restore and psql are. */
  programs: string
  url: string
  close(): Promise<void>
}

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

async function rowsOf(database: OpenDatabase): Promise<Record<string, string>> {
  const rows: Record<string, string> = {}
  for (const table of COMPARED) {
    const found = await sql`select * from ${sql.table(table)}`.execute(database.reader)
    assert.ok(found.rows.length > 0, table)
    rows[table] = found.rows
      .map((row) => JSON.stringify(row))
      .sort()
      .join('\n')
  }
  return rows
}

function fileOf(path: string, content: string | Buffer): string {
  writeFileSync(path, content)
  return path
}

async function databasesOn(url: string): Promise<string[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query('select datname from pg_database order by 1')
  await client.end()
  return rows.map(({ datname }) => datname)
}

async function openWorld(dialect: TestDialect, system: InstalledPostgres | null): Promise<World> {
  const filled = await openFilledMarket(dialect)
  const backup = join(filled.folder, 'a backup')
  const made = await backUp(filled.database, backup)
  assert.is(made.restore, `affiliate db restore '${backup}'`)
  const own = new URL(filled.url).pathname.slice(1)
  const databases = async () => (system ? await databasesOn(system.url) : [])
  const files = () => readdirSync(filled.folder).filter((name) => !/-(wal|shm)$/.test(name))
  const atFirst = files()
  return {
    filled,
    backup,
    affiliate: (args, settings = {}) =>
      runHere(args, { DATABASE_URL: filled.url, APP_KEY: filled.appKey, ...settings }),
    places: async () => [...files(), ...(await databases())],
    async clear() {
      for (const name of files())
        if (!atFirst.includes(name)) rmSync(join(filled.folder, name), { recursive: true })
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
export function testRestore(dialect: TestDialect, system: InstalledPostgres | null): Test<World> {
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
    const before = await rowsOf(database)
    const { executed, pending } = await migrationState(database)
    const { code, stdout, stderr } = await affiliate(['db', 'restore', backup, '--json'])
    assert.is(code, 0, stderr)
    const restored = JSON.parse(stdout)
    assert.equal([restored.ok, restored.migrated], [true, pending])
    assert.ok(restored.invariants.length > 30)
    assert.equal((await migrationState(database)).executed, executed)
    await database.close()
    for (const command of restored.swap_commands) execFileSync('sh', ['-c', command], { stdio: 'pipe' })
    const service = await startService({
      environment: {
        ...{ PORT: '0', DATABASE_URL: url, DATA_DIR: filled.folder, APP_KEY: filled.appKey },
        ...{ LOG_LEVEL: 'silent', ROLES: 'web' },
      },
    })
    try {
      assert.equal(service.migrated, [])
      assert.is((await call(service.url ?? '', 'GET', '/readyz')).status, 200)
      assert.equal(await rowsOf(service.app.database), before)
    } finally {
      await service.stop()
      await clear()
      await filled.close()
    }
  })

  it('refuses a target that exists, and keeps it as it is', async (world) => {
    const { filled, backup, affiliate, places } = world
    assert.is((await affiliate(['db', 'restore', backup])).code, 0)
    const before = await places()
    const again = await affiliate(['db', 'restore', backup])
    assert.is(again.code, 1)
    assert.match(again.stderr, ONE_LINE)
    assert.match(again.stderr, /already.*--to/)
    assert.equal(await places(), before)
    const own = new URL(filled.url).pathname.slice(1)
    const to = system ? `${own}_another` : join(filled.folder, 'another.db')
    const named = await affiliate(['db', 'restore', backup, '--to', to])
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

  const refused: {
    what: string
    says: RegExp
    key?: string
    make(world: World): Promise<string> | string
  }[] = [
    {
      what: 'half a file',
      says: /pg_restore: error|is damaged/,
      make({ backup }) {
        const bytes = readFileSync(backup)
        return fileOf(`${backup}.half`, bytes.subarray(0, Math.floor(bytes.length / 2)))
      },
    },
    {
      what: 'a file whose bytes were changed',
      // Some damage ends pg_restore by a signal.
      says: /pg_restore: error|failed: ended by SIG|is damaged/,
      make({ backup }) {
        const bytes = readFileSync(backup)
        // Over the start of a page in the middle, or over what compressed rows there are.
        const middle = Math.floor(bytes.length / 2 / 4096) * 4096
        bytes.fill(0xa5, middle, middle + 8192)
        return fileOf(`${backup}.changed`, bytes)
      },
    },
    {
      what: 'a file that is no backup',
      says: /is not a backup of this service/,
      make: ({ backup }) => fileOf(`${backup}.sql`, 'SQL'.repeat(1000)),
    },
    {
      what: "the other database's backup",
      says: /is a backup of (SQLite|PostgreSQL), but DATABASE_URL names (SQLite|PostgreSQL)/,
      make: ({ backup }) =>
        fileOf(`${backup}.other`, dialect === 'sqlite' ? 'PGDMP\x01\x0e' : 'SQLite format 3\0'),
    },
    { what: 'a wrong key', says: /setting APP_KEY: /, key: WRONG_KEY, make: ({ backup }) => backup },
    {
      what: 'a backup of a newer version',
      says: /was made by a newer version .*99999-later/,
      make: (world) => backUpWith(world, addMigration('99999-later'), removeMigration('99999-later')),
    },
    {
      what: 'a backup made before 0.2.0',
      says: /was made before version 0\.2\.0/,
      make: (world) => backUpWith(world, addMigration('00002-guards'), removeMigration('00002-guards')),
    },
    {
      what: 'a database of another program',
      says: /is not a backup of this service: it has no migrations/,
      make: (world) =>
        backUpWith(
          world,
          sql`alter table mikro_orm_migrations rename to theirs`,
          sql`alter table theirs rename to mikro_orm_migrations`,
        ),
    },
    {
      what: 'a file that does not exist',
      says: /cannot read .*ENOENT/,
      make: ({ backup }) => `${backup}.none`,
    },
  ]
  for (const { what, says, key, make } of refused) {
    it(`refuses ${what} in one line and leaves nothing behind`, async (world) => {
      const file = await make(world)
      const before = await world.places()
      const ended = await world.affiliate(['db', 'restore', file], key ? { APP_KEY: key } : {})
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
      await command.until(() => (statSync(draft, { throwIfNoEntry: false })?.size ?? 0) > 0)
      const { code } = await command.interrupt()
      assert.equal([code, await places()], [130, before])
      return
    }
    // The real program reads the archive; the one that would load it never ends.
    const tools = join(filled.folder, 'tools')
    const tool = join(tools, 'pg_restore')
    mkdirSync(tools)
    const real = `${system?.programs}/pg_restore`
    writeFileSync(
      tool,
      `#!/bin/sh\ncase "$*" in *--schema-only*) exec ${real} "$@";; esac\necho $$ > "$0.pid"\nexec sleep 600\n`,
    )
    chmodSync(tool, 0o700)
    const before = await places()
    const command = startAffiliate(['db', 'restore', backup], {
      environment: { ...environment, PATH: `${tools}:${process.env.PATH}` },
      folder: filled.folder,
    })
    await command.until(() => existsSync(`${tool}.pid`) && readFileSync(`${tool}.pid`, 'utf8') !== '')
    assert.ok((await places()).length > before.length)
    const { code, stderr } = await command.interrupt()
    assert.equal([code, stderr, await places()], [130, '', before])
    const pid = Number(readFileSync(`${tool}.pid`, 'utf8'))
    await eventually(() => !isAlive(pid))
  })

  if (dialect === 'sqlite') {
    const disk = openSmallDisk(1)
    if (disk === null) it.skip('this user can mount no small file system here to be filled', () => {})
    else {
      it('onto a full disk is refused in one line and leaves nothing behind', async (world) => {
        try {
          disk.fill()
          const before = readdirSync(disk.folder)
          const target = join(disk.folder, 'restored.db')
          const ended = await world.affiliate(['db', 'restore', world.backup, '--to', target])
          assert.equal([ended.code, ended.stdout], [1, ''])
          assert.match(ended.stderr, ONE_LINE)
          assert.match(ended.stderr, /disk is full|ENOSPC/i)
          assert.equal(readdirSync(disk.folder), before)
        } finally {
          await disk.close()
        }
      })
    }
  } else {
    it('says what a role lacks to create databases', async ({ backup, affiliate, filled, places }) => {
      const before = await places()
      const DATABASE_URL = await addServiceRole(filled.url)
      const ended = await affiliate(['db', 'restore', backup], { DATABASE_URL })
      assert.equal([ended.code, await places()], [1, before])
      assert.match(ended.stderr, ONE_LINE)
      assert.match(ended.stderr, /role lacks a privilege.*--database-url/)
    })

    it('says what to install where there is no pg_restore', async ({ backup, affiliate, filled, places }) => {
      const before = await places()
      const ended = await affiliate(['db', 'restore', backup], { PATH: filled.folder })
      assert.equal([ended.code, await places()], [1, before])
      assert.match(
        ended.stderr,
        /^affiliate: pg_restore is not on PATH\. Install PostgreSQL's client tools\.\n$/,
      )
    })
  }

  return it
}
