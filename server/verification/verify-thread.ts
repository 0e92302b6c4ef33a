import { parentPort, workerData } from 'node:worker_threads'
import { sql } from 'kysely'
import { sqliteFileOf } from '../platform/config.ts'
import { appKeysOf, type DerivedKeys } from '../platform/crypto/key-ring.ts'
import type { Database } from '../platform/database/database.ts'
import type { Breach } from './invariant.ts'
import { INVARIANTS } from './verify-books.ts'

/** One check, or of a check that reads pages one part. */
export interface Task {
  name: string
  after: string | null
  upTo: string | null
}

/** What a thread tells: rows of a page as it goes, and at the end the outcome or what went wrong. */
export type Told =
  | { kind: 'rows'; name: string; rows: number }
  | { kind: 'done'; name: string; breaches: Breach[]; ms: number }
  | { kind: 'failed'; message: string; code: unknown }

/**
 * Memory in MB for sorting and for pages of the file: one thread works on one check at a time. SQLite takes it in our own
 * process, for its pages and once more for what it sorts, and the system keeps the pages of the file as well.
 */
const MEMORY_MB = { sqlite: 24, postgresql: 64 }

/** What a thread is started with. */
export interface ThreadData {
  url: string
  keys: DerivedKeys
}

/** A connection of this thread alone, for reading only, whose statements may take as long as they like. */
async function openForChecks(url: string): Promise<Database> {
  if (sqliteFileOf(url) !== null) {
    const { openDatabase } = await import('../platform/database/open-database.ts')
    const database = await openDatabase(url, { create: false, readOnly: true })
    await sql`pragma cache_size = ${sql.lit(-1024 * MEMORY_MB.sqlite)}`.execute(database.reader)
    return database
  }
  const { openPostgres } = await import('../platform/database/postgresql.ts')
  const database = openPostgres(url, { poolSize: 1, queryTimeoutMs: 0, readOnly: true })
  await sql`set work_mem = ${sql.lit(`${MEMORY_MB.postgresql}MB`)}`.execute(database.reader)
  // A thread more in the server for each of ours would only take turns with them.
  await sql`set max_parallel_workers_per_gather = 0`.execute(database.reader)
  await sql`set jit = off`.execute(database.reader)
  return database
}

async function work(database: Database, { name, after, upTo }: Task): Promise<Told> {
  const invariant = INVARIANTS.find((candidate) => candidate.name === name)
  if (!invariant) throw new Error(`no invariant ${name}`)
  const start = performance.now()
  const onRows = (rows: number) => tell({ kind: 'rows', name, rows })
  const breaches = await invariant.breaches(database.reader, keys, { after, upTo, onRows })
  return { kind: 'done', name, breaches, ms: performance.now() - start }
}

function tell(told: Told): void {
  parentPort?.postMessage(told)
}

const data = workerData as ThreadData
const keys = appKeysOf(data.keys)
const database = openForChecks(data.url)

parentPort?.on('message', (task: Task) => {
  database
    .then((opened) => work(opened, task))
    .catch((error): Told => {
      const { message, code } = error as { message: string; code?: unknown }
      return { kind: 'failed', message, code }
    })
    .then(tell)
})
