// Writes `fixtures/databases/COMMIT/`: a database of each dialect with rows in every table, as the checked-out commit makes it.
// COMMIT is its short hash. TEST_POSTGRES_URL names a server that the `pg_dump` on PATH can read. See fixtures/databases/README.md.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { backUp } from '../cli/commands/db/backup.ts'
import { fillMarket } from './fixture-databases/fill-market.ts'
import { PASSWORD } from './fixture-databases/market-actions.ts'

const [name] = process.argv.slice(2)
if (!name || !/^[0-9a-f]{7}$/.test(name)) throw new Error('usage: fixture-databases.ts COMMIT')
if (!process.env.TEST_POSTGRES_URL) throw new Error('TEST_POSTGRES_URL is not set')

/** The testbed's key. It protects nothing. */
const APP_KEY = Buffer.alloc(32, 7).toString('base64')
const target = fileURLToPath(new URL(`../fixtures/databases/${name}/`, import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'affiliate-fixture-'))
mkdirSync(target, { recursive: true })
try {
  await writeSqlite()
  await writePostgres()
  writeFileSync(
    join(target, 'fixture.json'),
    `${JSON.stringify({ commit: name, app_key: APP_KEY, password: PASSWORD }, null, 2)}\n`,
  )
} finally {
  rmSync(scratch, { recursive: true, force: true })
}

async function writeSqlite(): Promise<void> {
  const market = await fillMarket('sqlite', scratch)
  const { file } = await backUp(market.bed.testDatabase.database, join(scratch, 'sqlite.db'))
  await market.close()
  writeFileSync(join(target, 'sqlite.db.gz'), gzipSync(readFileSync(file), { level: 9 }))
}

/** Rows as INSERT statements, so that any client can load them. */
async function writePostgres(): Promise<void> {
  const market = await fillMarket('postgresql', scratch)
  const options = ['--inserts', '--rows-per-insert=100', '--no-owner', '--no-privileges']
  const dump = execFileSync('pg_dump', [...options, market.bed.testDatabase.url], { encoding: 'utf8' })
  await market.close()
  const sql = dump
    // Newer versions of pg_dump put commands of psql around the SQL.
    .replace(/^\\(un)?restrict .*\n/gm, '')
    // A server that was built without lz4 must load it too, as the migrations allow.
    .replace(
      /^ALTER TABLE .* SET COMPRESSION lz4;$/gm,
      'DO $$$$ BEGIN $& EXCEPTION WHEN feature_not_supported THEN NULL; END $$$$;',
    )
  writeFileSync(join(target, 'postgresql.sql.gz'), gzipSync(sql, { level: 9 }))
}
