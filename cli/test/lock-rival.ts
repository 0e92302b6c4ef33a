import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { TestDatabase } from '../../server/test/testkit/databases.ts'

/** A process of its own that would write to the same database all the time. */
export interface LockRival {
  /** How long another writer would have waited at most since it was asked last, ms. */
  worst(): Promise<number>
  end(): Promise<void>
}

/** Takes and gives back SQLite's write lock all the time. */
const ON_SQLITE = `
  const { default: Database } = await import('better-sqlite3')
  const db = new Database(process.argv[1], { timeout: 0 })
  let freeAt = performance.now()
  const look = () => {
    try { db.exec('begin immediate; rollback'); freeAt = performance.now() } catch (error) {
      if (error.code !== 'SQLITE_BUSY') throw error
      kept = Math.max(kept, performance.now() - freeAt)
    }
  }`

/** Asks for the age of each transaction that holds a row, or a table against writers. */
const ON_POSTGRESQL = `
  const { default: pg } = await import('pg')
  const client = new pg.Client(process.argv[1])
  await client.connect()
  const look = async () => {
    const { rows } = await client.query(\`
      select coalesce(max(extract(epoch from clock_timestamp() - xact_start) * 1000), 0)::float8 as age
      from pg_stat_activity as one
      where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and (
        backend_xid is not null or exists (
          select from pg_locks where pg_locks.pid = one.pid and granted and locktype = 'relation'
            and mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')))\`)
    kept = Math.max(kept, rows[0].age)
  }`

const LOOKING = `
  const { setTimeout: pause } = await import('node:timers/promises')
  let over = false
  process.stdin.on('data', () => { console.log(kept); kept = 0 })
  process.stdin.on('end', () => { over = true })
  console.log('ready')
  while (!over) {
    await look()
    await pause(1)
  }
  process.exit()`

export async function openLockRival({ database, url }: TestDatabase): Promise<LockRival> {
  const [program, place] = database.dialect === 'sqlite' ? [ON_SQLITE, database.file] : [ON_POSTGRESQL, url]
  const code = `let kept = 0\n${program}\n${LOOKING}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code, place], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const line = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error('who looked at the locks has gone')
    return value
  }
  await line()
  return {
    async worst() {
      child.stdin.write('?')
      return Number(await line())
    },
    async end() {
      child.stdin.end()
      await ended
    },
  }
}
