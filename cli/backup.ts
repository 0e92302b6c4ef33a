import { chmodSync, closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { OpenDatabase } from '../server/platform/open-database.ts'
import { Failure } from './failures.ts'

export interface Backup {
  file: string
  bytes: number
  /** How it is put back, for people. */
  restore: string
}

/**
 * Writes a consistent copy of the database to `file` while others go on using it. It is readable to nobody else, and
 * under its name only when it is whole. Refuses a file that exists.
 */
export async function backUp(database: OpenDatabase, file: string): Promise<Backup> {
  const target = resolve(file)
  if (existsSync(target)) throw new Failure(`${target} exists already. Name a file that does not.`)
  // A folder of its own: whatever is made beside the draft goes with it, and once it is gone nothing new can be made there.
  const folder = `${target}.${process.pid}.tmp`
  const draft = join(folder, 'draft')
  const clean = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  const interrupt = () => {
    clean()
    process.exit(130)
  }
  // Before there is a file: whoever ends it at its first moment leaves nothing behind either.
  for (const signal of SIGNALS) process.once(signal, interrupt)
  try {
    makePrivateFile(folder, draft)
    const restore =
      database.dialect === 'sqlite' ? await copySqlite(database.file, draft) : await dump(database.url, draft)
    renameSync(draft, target)
    return { file: target, bytes: statSync(target).size, restore: restore(target) }
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt)
    clean()
  }
}

/** Whoever ends it gets no half of a backup left behind. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

type RestoreText = (file: string) => string

function makePrivateFile(folder: string, path: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
    closeSync(openSync(path, 'wx', 0o600))
    chmodSync(path, 0o600)
  } catch (error) {
    throw new Failure(`cannot write ${folder}: ${(error as NodeJS.ErrnoException).code}`)
  }
}

/** How many pages are copied between two looks at whether somebody wants it ended: 8 MB, some tens of milliseconds. */
const PAGES_AT_A_TIME = 2048

/** SQLite's online backup, beside running readers and writers. */
async function copySqlite(source: string, draft: string): Promise<RestoreText> {
  const { default: BetterSqlite } = await import('better-sqlite3')
  const handle = new BetterSqlite(source, { readonly: true, fileMustExist: true, timeout: 5000 })
  try {
    // It begins anew when somebody wrote since its last step, unless this connection goes on reading what was there before.
    handle.exec('begin; select 1 from sqlite_schema')
    await handle.backup(draft, { progress: () => PAGES_AT_A_TIME })
  } finally {
    handle.close()
  }
  const copy = new BetterSqlite(draft, { fileMustExist: true })
  try {
    // The copy stands alone: no WAL file belongs to it.
    copy.pragma('journal_mode = DELETE')
    const verdict = copy.pragma('quick_check', { simple: true })
    if (verdict !== 'ok') throw new Failure(`the copy is not sound: ${verdict}`, { code: 'unavailable' })
  } finally {
    copy.close()
  }
  // A signal that came during the check is heard before the copy gets its name.
  await turn()
  return (file) => `stop the service, remove ${source}-wal and ${source}-shm, and copy ${file} to ${source}.`
}

/** PostgreSQL's own tool; its password goes by the environment, where `ps` does not show it. */
async function dump(databaseUrl: string, draft: string): Promise<RestoreText> {
  const { spawn } = await import('node:child_process')
  const url = new URL(databaseUrl)
  const password = decodeURIComponent(url.password)
  url.password = ''
  const child = spawn('pg_dump', ['--format=custom', '--file', draft, '--dbname', url.href], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...(password ? { PGPASSWORD: password } : {}) },
  })
  const endIt = () => child.kill()
  process.once('exit', endIt)
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-4000)
  })
  const code = await new Promise<number | null>((done, failed) => {
    child.once('error', failed)
    child.once('close', done)
  })
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      throw new Failure(
        `pg_dump is not on PATH. Install PostgreSQL's client tools, or back up where the server runs: pg_dump --format=custom --file FILE '${url.href}'`,
      )
    })
    .finally(() => process.off('exit', endIt))
  if (code === 0) return (file) => `pg_restore --clean --if-exists --dbname '${url.href}' ${file}`
  throw new Failure(`pg_dump failed: ${complaint.trim().split('\n').at(-1) ?? `exit code ${code}`}`)
}
