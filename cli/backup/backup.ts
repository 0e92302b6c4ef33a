import { chmodSync, closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import BetterSqlite from 'better-sqlite3'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import { Failure } from '../failures.ts'
import { runTool, shellWord, toolAddress } from './postgres-tools.ts'

/** A copy that a backup is restored into. It has another name until it is whole and its books were verified. */
export interface RestoredCopy {
  /** The copy's final name, for people: a path, or the name of a database. */
  place: string
  /** DATABASE_URL of the unfinished copy. */
  draftUrl: string
  /** DATABASE_URL of the finished copy, without a password. */
  url: string
  /** Loads the backup. Throws a `Failure` when it is damaged or belongs to something else. */
  load(): Promise<void>
  /** Gives the copy its final name. */
  keep(): Promise<void>
  /** Removes the copy. Does nothing once it is kept. */
  discard(): Promise<void>
  /** How to put the copy in place of the present database, in order: shell commands that keep DATABASE_URL. */
  swapCommands(): string[]
}

/**
 * Writes a consistent copy of the database to `file` while others go on using it. Only this user can read it, and
 * it gets its name when it is complete. Refuses a file that exists. `restore` is the command that restores it into a new database.
 */
export async function backUp(database: OpenDatabase, file: string) {
  const target = resolve(file)
  if (existsSync(target)) throw new Failure(`${target} exists already. Name a file that does not.`)
  // A folder of its own: whatever is made beside the draft goes with it, and once it is gone nothing new can be made there.
  const folder = `${target}.${process.pid}.tmp`
  const draft = join(folder, 'draft')
  const clean = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  // Before the file is created, so that an interruption at any moment leaves nothing behind.
  const ignoreSignals = onSignals(() => {
    clean()
    process.exit(130)
  })
  try {
    makePrivateFile(folder, draft)
    if (database.dialect === 'sqlite') await copySqlite(database.file, draft)
    else await dump(database.url, draft)
    // A signal that came during the check is heard before the copy gets its name.
    await turn()
    renameSync(draft, target)
    const restore = `affiliate db restore ${shellWord(target)}`
    return { file: target, bytes: statSync(target).size, restore }
  } finally {
    ignoreSignals()
    clean()
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Calls `end`, which ends the process, when a signal interrupts it. Returns what takes that back. */
export function onSignals(end: () => void): () => void {
  for (const signal of SIGNALS) process.once(signal, end)
  return () => {
    for (const signal of SIGNALS) process.off(signal, end)
  }
}

/** Makes a folder and an empty file in it that only this user can read. */
export function makePrivateFile(folder: string, path: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
    closeSync(openSync(path, 'wx', 0o600))
    chmodSync(path, 0o600)
  } catch (error) {
    throw new Failure(`cannot write ${folder}: ${(error as NodeJS.ErrnoException).code}`)
  }
}

/** Pages copied before the next check for an interruption: 8 MB. */
const PAGES_AT_A_TIME = 2048

/**
 * SQLite's online backup, beside running readers and writers. `check` is the pragma that examines the copy: `integrity_check` compares
 * the indexes too.
 */
export async function copySqlite(
  source: string,
  draft: string,
  check: 'quick_check' | 'integrity_check' = 'quick_check',
): Promise<void> {
  const handle = new BetterSqlite(source, { readonly: true, fileMustExist: true, timeout: 5000 })
  try {
    // A write by another process restarts the copy, unless this connection keeps its snapshot.
    handle.exec('begin; select 1 from sqlite_schema')
    await handle.backup(draft, { progress: () => PAGES_AT_A_TIME })
  } finally {
    handle.close()
  }
  const copy = new BetterSqlite(draft, { fileMustExist: true })
  try {
    // The copy stands alone: no WAL file belongs to it.
    copy.pragma('journal_mode = DELETE')
    const verdict = String(copy.pragma(check, { simple: true }))
    if (verdict === 'ok') return
    const [problem] = verdict.split('\n').filter((line) => !line.startsWith('***'))
    throw new Failure(`${source} is damaged (${problem}).`, { code: 'unavailable' })
  } finally {
    copy.close()
  }
}

async function dump(databaseUrl: string, draft: string): Promise<void> {
  const { url, environment } = toolAddress(databaseUrl)
  await runTool('pg_dump', ['--format=custom', '--file', draft, '--dbname', url], {
    environment,
    missing: `, or back up where the server runs: pg_dump --format=custom --file FILE '${url}'`,
  })
}
