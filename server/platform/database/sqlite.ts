import BetterSqlite from 'better-sqlite3'
import {
  CompiledQuery,
  type DatabaseConnection,
  Kysely,
  SqliteDialect,
  type SqliteDialectConfig,
  SqliteDriver,
  type SqliteStatement,
} from 'kysely'
import { LRUCache } from 'lru-cache'
import { ParameterRows } from './bulk-values.ts'
import { type Database, refuseNested, runTransaction, withConnection, withRetries } from './database.ts'
import { DatabaseBusy, sqliteFault } from './database-faults.ts'
import type { Schema } from './schema.ts'

/** How long opening and reading wait for a lock of another process, ms. In WAL mode that happens only during recovery after a crash. */
const BUSY_TIMEOUT_MS = 5000
/** How long a transaction waits for others of this process, ms. With `BEGIN_TIMEOUT_MS` a caller gets an answer within five seconds. */
const QUEUE_TIMEOUT_MS = 4000
/** How long a transaction waits to begin while another process writes, ms. */
const BEGIN_TIMEOUT_MS = 1000
const MAX_PAUSE_MS = 25
const MAX_STATEMENTS = 500

export interface SqliteDatabase extends Database {
  readonly dialect: 'sqlite'
  readonly file: string
  /** The writing connection, for migrations. */
  readonly writer: Kysely<Schema>
}

/**
 * Opens an SQLite file with two connections: one writer, which runs the transactions of the process one after the other, and one reader.
 * WAL with `synchronous=FULL`: a commit is on disk even if the power fails. With `readOnly` neither can write.
 */
export function openSqlite(
  file: string,
  options: { create: boolean; readOnly?: boolean | undefined },
): SqliteDatabase {
  const openWriter = () => {
    const handle = new BetterSqlite(file, { fileMustExist: !options.create, timeout: BUSY_TIMEOUT_MS })
    const mode = handle.pragma('journal_mode = WAL', { simple: true })
    if (mode !== 'wal') throw new Error(`${file} must be in WAL mode, but SQLite uses mode ${mode}`)
    handle.pragma('synchronous = FULL')
    // Checkpoints after 32 MB of changes: after 4 MB, the default, they take a tenth of the time in which orders are applied.
    handle.pragma('wal_autocheckpoint = 8000')
    handle.pragma('foreign_keys = ON')
    // `whenUnlocked` waits for the write lock without blocking the event loop.
    handle.pragma('busy_timeout = 0')
    return handle
  }
  const openReader = () => {
    const readonly = options.readOnly ?? false
    const handle = new BetterSqlite(file, {
      fileMustExist: !options.create,
      timeout: BUSY_TIMEOUT_MS,
      readonly,
    })
    handle.pragma('query_only = ON')
    return handle
  }
  const writing = new Connection(options.readOnly ? openReader : openWriter)
  const reading = new Connection(openReader)
  const writer = new Kysely<Schema>({ dialect: writing.dialect })
  const reader = new Kysely<Schema>({ dialect: reading.dialect })
  return {
    dialect: 'sqlite',
    file,
    writer,
    reader,
    transaction: (work) => runTransaction(writer, sqliteFault, work, QUEUE_TIMEOUT_MS),
    async executeBatch<Row>(...statements: CompiledQuery[]) {
      refuseNested(writer)
      const rows =
        writing.tryBatch(statements) ??
        (await withRetries(sqliteFault, () =>
          withConnection(writer, performance.now() + QUEUE_TIMEOUT_MS, () =>
            whenUnlocked(() => writing.batch(statements)),
          ),
        ))
      return rows as Row[]
    },
    faultOf: sqliteFault,
    async close() {
      await reader.destroy()
      await writer.destroy()
    },
  }
}

/** One better-sqlite3 handle, opened at its first use, that keeps its prepared statements. */
class Connection {
  readonly dialect: SqliteDialect
  readonly #statements = new LRUCache<string, SqliteStatement>({ max: MAX_STATEMENTS })
  #handle: BetterSqlite.Database | undefined
  #runBatch: BetterSqlite.Transaction<(statements: readonly CompiledQuery[]) => unknown[]> | undefined

  constructor(open: () => BetterSqlite.Database) {
    const database = async () => {
      const handle = open()
      this.#handle = handle
      this.#runBatch = handle.transaction((statements) => statements.flatMap((one) => this.#rowsOf(one)))
      const close = () => {
        this.#statements.clear()
        handle.close()
      }
      return { prepare: (sql: string) => this.#prepare(handle, sql), close }
    }
    const createDriver = () => new ImmediateDriver({ database }, () => this.#handle?.inTransaction ?? false)
    this.dialect = Object.assign(new SqliteDialect({ database }), { createDriver })
  }

  /** Runs the statements in one transaction, synchronously; returns their rows. */
  batch(statements: readonly CompiledQuery[]): unknown[] {
    if (!this.#runBatch) throw new Error('the connection is not open')
    return this.#runBatch.immediate(statements)
  }

  /** As `batch`, but returns `null` and does nothing while a transaction of this or another process is open. */
  tryBatch(statements: readonly CompiledQuery[]): unknown[] | null {
    if (!this.#handle || this.#handle.inTransaction) return null
    try {
      return this.batch(statements)
    } catch (error) {
      if (sqliteFault(error)?.kind === 'contention') return null
      throw error
    }
  }

  #rowsOf({ sql, parameters }: CompiledQuery): unknown[] {
    const statement = this.#prepare(this.#handle as BetterSqlite.Database, sql)
    if (statement.reader) return statement.all(parameters)
    statement.run(parameters)
    return []
  }

  #prepare(handle: BetterSqlite.Database, sql: string): SqliteStatement {
    const kept = this.#statements.get(sql)
    if (kept) return kept
    const statement = handle.prepare(sql)
    const prepared: SqliteStatement = {
      reader: statement.reader,
      all: (parameters) => rowsOf(parameters).flatMap((row) => exactRows(statement, row)),
      run(parameters) {
        let changes = 0
        for (const row of rowsOf(parameters)) changes += statement.run(row).changes
        return { changes, lastInsertRowid: 0 }
      },
      iterate() {
        throw new Error('rows are not streamed')
      },
    }
    this.#statements.set(sql, prepared)
    return prepared
  }
}

/** The parameters of each run of a statement. */
function rowsOf(parameters: readonly unknown[]): readonly (readonly unknown[])[] {
  const [first] = parameters
  return first instanceof ParameterRows ? first.rows : [parameters]
}

/**
 * The driver rounds whole numbers beyond 2^53 silently. A query that finds one is read again, and such a number becomes a bigint, which no
 * sum with other amounts accepts. A statement that writes and returns one throws.
 */
function exactRows(statement: BetterSqlite.Statement, parameters: readonly unknown[]): unknown[] {
  const rows = statement.all(parameters)
  if (rows.every(isExact)) return rows
  if (!statement.readonly) throw new Error('not an exact whole number')
  try {
    return statement.safeIntegers(true).all(parameters).map(withNumbers)
  } finally {
    statement.safeIntegers(false)
  }
}

function isExact(row: unknown): boolean {
  return Object.values(row as object).every(
    (value) => typeof value !== 'number' || Math.abs(value) <= Number.MAX_SAFE_INTEGER,
  )
}

/** With numbers instead of bigints where they are exact. */
function withNumbers(row: unknown): unknown {
  const entries = Object.entries(row as object).map(([name, value]) => [
    name,
    typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value,
  ])
  return Object.fromEntries(entries)
}

/**
 * Transactions that begin `immediate` and wait for another process's lock without blocking this one. A deferred transaction that reads
 * before it writes fails as soon as another process has written in between.
 */
class ImmediateDriver extends SqliteDriver {
  readonly #inTransaction: () => boolean

  constructor(config: SqliteDialectConfig, inTransaction: () => boolean) {
    super(config)
    this.#inTransaction = inTransaction
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await whenUnlocked(() => connection.executeQuery(CompiledQuery.raw('begin immediate')))
  }

  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // SQLite rolls back by itself on a full disk or an I/O error. A second rollback would hide that error.
    if (this.#inTransaction()) await super.rollbackTransaction(connection)
  }
}

/** Runs `begin` as soon as no other process holds the write lock; throws `DatabaseBusy` after `BEGIN_TIMEOUT_MS`. */
async function whenUnlocked<T>(begin: () => T | Promise<T>): Promise<T> {
  const end = performance.now() + BEGIN_TIMEOUT_MS
  // SQLite's own busy_timeout would block the event loop.
  for (let pause = 1; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    try {
      return await begin()
    } catch (error) {
      if (sqliteFault(error)?.kind !== 'contention') throw error
      if (performance.now() >= end) throw new DatabaseBusy('another process holds the write lock')
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }
}
