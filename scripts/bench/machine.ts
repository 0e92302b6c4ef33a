import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import BetterSqlite from 'better-sqlite3'
import { CONNECTIONS } from './load-order.ts'

export type Machine = Record<string, string>

const REPOSITORY = new URL('../..', import.meta.url)

/** What the figures were measured on and with. */
export function describeMachine(postgresVersion: string | null): Machine {
  const memory = `${Math.round(totalmem() / 2 ** 30)} GB`
  const load = loadavg()
    .map((value) => value.toFixed(1))
    .join(' ')
  return {
    date: new Date().toISOString(),
    commit: commit(),
    machine: `${availableParallelism()} × ${cpus()[0]?.model.trim() ?? '?'}, ${memory}, ${process.platform} ${process.arch}`,
    load: `${load} at the end`,
    node: process.version,
    sqlite: `${sqliteVersion()}, WAL, synchronous=FULL`,
    postgresql: postgresVersion === null ? 'not measured' : `${postgresVersion}, fsync=on`,
    generator: `autocannon ${versionOf('autocannon')} (saturation), undici ${versionOf('undici')} (fixed rate), ${CONNECTIONS} connections, keep-alive, loopback`,
    fastify: versionOf('fastify'),
  }
}

function commit(): string {
  try {
    const git = (...args: string[]) => execFileSync('git', args, { cwd: REPOSITORY, encoding: 'utf8' }).trim()
    const changed = git('status', '--porcelain') === '' ? '' : ' and changes'
    return `${git('rev-parse', '--short', 'HEAD')}${changed}`
  } catch {
    return 'unknown'
  }
}

function sqliteVersion(): string {
  const database = new BetterSqlite(':memory:')
  try {
    return String(database.prepare('select sqlite_version()').pluck().get())
  } finally {
    database.close()
  }
}

function versionOf(name: string): string {
  const path = createRequire(import.meta.url).resolve(`${name}/package.json`)
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
}
