import { hash } from 'node:crypto'
import {
  constants,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Pool } from 'pg'
import { openDatabase } from '../../platform/database/open-database.ts'

/** Any number that no part of the service takes as its advisory lock. */
const TEMPLATE_LOCK = 7_041_999
const SERVER = fileURLToPath(new URL('../..', import.meta.url))

let sqliteMade: Promise<string> | undefined
let postgresMade: Promise<string> | undefined

/** Puts a copy of an empty database with the newest schema at `file`. */
export async function copyMigratedSqlite(file: string): Promise<void> {
  sqliteMade ??= makeSqlite()
  copyFileSync(await sqliteMade, file, constants.COPYFILE_FICLONE)
}

/** The name of an empty database with the newest schema, to make others from. */
export function migratedPostgres(): Promise<string> {
  postgresMade ??= makePostgres()
  return postgresMade
}

/**
 * Made once a run where the runner gives its processes a folder in common, since running the migrations takes longer than
 * many a test; otherwise once a process.
 */
async function makeSqlite(): Promise<string> {
  const folder = process.env.TEST_RUN_FOLDER ?? join(tmpdir(), `affiliate-test-template-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  if (!process.env.TEST_RUN_FOLDER) {
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  }
  const file = join(folder, `${templateName()}.db`)
  if (existsSync(file)) return file
  // Other processes may make it too: each puts a complete one in place, and all are the same.
  const draft = `${file}.${process.pid}`
  await migrateFresh(`sqlite:${draft}`)
  renameSync(draft, file)
  return file
}

async function makePostgres(): Promise<string> {
  const name = templateName()
  const draft = `${name}_draft`
  await administer('select pg_advisory_lock($1)', [TEMPLATE_LOCK])
  try {
    const { rowCount } = await administer('select 1 from pg_database where datname = $1', [name])
    if (rowCount) return name
    await administer(`drop database if exists ${draft} with (force)`)
    await administer(`create database ${draft}`)
    await migrateFresh(databaseUrl(draft))
    await administer(`alter database ${draft} rename to ${name}`)
  } finally {
    await administer('select pg_advisory_unlock($1)', [TEMPLATE_LOCK])
  }
  return name
}

async function migrateFresh(url: string): Promise<void> {
  const { migrate } = await import('../../migrator.ts')
  const database = await openDatabase(url, { create: true })
  await migrate(database)
  await database.close()
}

/** Another one for other migrations, so that what an older run left on a database server is never taken for today's. */
function templateName(): string {
  const files = globSync('migrations/**/*.ts', { cwd: SERVER }).sort()
  const texts = files.map((file) => readFileSync(join(SERVER, file), 'utf8'))
  return `template_${hash('sha256', texts.join('\n'), 'hex').slice(0, 16)}`
}

export function databaseUrl(name: string): string {
  const server = process.env.TEST_POSTGRES_URL
  if (!server) throw new Error('TEST_POSTGRES_URL is not set: run this through "npm test -- <file>"')
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

let administrators: Pool | undefined

/**
 * Runs a statement on the database server itself, e.g. one that makes a database, on the one connection that a process has for it, since
 * opening one takes the server longer than most statements. It does not keep the process running.
 */
export function administer(statement: string, values: unknown[] = []): Promise<{ rowCount: number | null }> {
  administrators ??= openAdministrators()
  return administrators.query(statement, values)
}

function openAdministrators(): Pool {
  const connectionString = databaseUrl('postgres')
  const pool = new Pool({ connectionString, max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true })
  // A connection that breaks while idle is replaced on its next use.
  pool.on('error', () => undefined)
  return pool
}
