import type Database from 'better-sqlite3'
import {
  CompiledQuery,
  createQueryId,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  IdentifierNode,
  type QueryCompiler,
  type QueryResult,
  RawNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { DatabaseBusy, sqliteFault } from './database-faults.ts'

/** How long a transaction waits to begin while another process writes, in ms. Then it is `unavailable`, not repeated. */
const BEGIN_PATIENCE_MS = 1000
const LONGEST_PAUSE_MS = 25

/** Enough for every statement of the service; batches of one statement with many lengths must not grow it for ever. */
const MAX_STATEMENTS = 500

/**
 * Kysely over one better-sqlite3 handle, with a few differences from the library's own dialect: transactions begin
 * `immediate`, since a deferred one that reads before it writes loses to other processes however long it waits; they
 * wait for another process's lock without holding up this one; prepared statements are kept; and a whole number that
 * is not exact does not pass.
 */
export class SqliteDialect implements Dialect {
  readonly #driver: SqliteDriver

  constructor(open: () => Database.Database) {
    this.#driver = new SqliteDriver(open)
  }

  createDriver(): Driver {
    return this.#driver
  }

  /**
   * A transaction of these statements here and now, past the queue for the connection: it is over before anything else can run. Answers what
   * the last one answers, or `null`, with nothing done, where it cannot be: not open yet, a transaction under way, or
   * another process writes.
   */
  atOnce(statements: readonly CompiledQuery[]): unknown[] | null {
    return this.#driver.atOnce(statements)
  }

  createQueryCompiler(): QueryCompiler {
    return new SqliteQueryCompiler()
  }

  createAdapter(): SqliteAdapter {
    return new SqliteAdapter()
  }

  createIntrospector(db: ConstructorParameters<typeof SqliteIntrospector>[0]): SqliteIntrospector {
    return new SqliteIntrospector(db)
  }
}

class SqliteDriver implements Driver {
  readonly #open: () => Database.Database
  #connection: SqliteConnection | undefined

  constructor(open: () => Database.Database) {
    this.#open = open
  }

  async init(): Promise<void> {
    this.#connection = new SqliteConnection(this.#open())
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    if (!this.#connection) throw new Error('the SQLite driver is not initialised')
    return this.#connection
  }

  async releaseConnection(): Promise<void> {}

  atOnce(statements: readonly CompiledQuery[]): unknown[] | null {
    return this.#connection?.atOnce(statements) ?? null
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await whenUnlocked(() => connection.executeQuery(CompiledQuery.raw('begin immediate')))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // SQLite itself rolls back on some errors (disk full, I/O): a second rollback would hide the first error.
    if ((connection as SqliteConnection).inTransaction) {
      await connection.executeQuery(CompiledQuery.raw('rollback'))
    }
  }

  async savepoint(connection: DatabaseConnection, name: string, compile: QueryCompiler['compileQuery']) {
    await this.#savepointCommand('savepoint', connection, name, compile)
  }

  async rollbackToSavepoint(
    connection: DatabaseConnection,
    name: string,
    compile: QueryCompiler['compileQuery'],
  ) {
    await this.#savepointCommand('rollback to', connection, name, compile)
  }

  async releaseSavepoint(
    connection: DatabaseConnection,
    name: string,
    compile: QueryCompiler['compileQuery'],
  ) {
    await this.#savepointCommand('release', connection, name, compile)
  }

  async #savepointCommand(
    command: string,
    connection: DatabaseConnection,
    name: string,
    compile: QueryCompiler['compileQuery'],
  ) {
    const node = RawNode.createWithChildren([
      RawNode.createWithSql(`${command} `),
      IdentifierNode.create(name),
    ])
    await connection.executeQuery(compile(node, createQueryId()))
  }

  async destroy(): Promise<void> {
    this.#connection?.close()
  }
}

/** Runs `begin` as soon as no other process holds the write lock; throws `DatabaseBusy` when that takes too long. */
async function whenUnlocked<T>(begin: () => T | Promise<T>): Promise<T> {
  const end = performance.now() + BEGIN_PATIENCE_MS
  // SQLite's own waiting (busy_timeout) would stop the whole process: no request could even be told "try later".
  for (let pause = 1; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      return await begin()
    } catch (error) {
      if (sqliteFault(error)?.kind !== 'contention') throw error
      if (performance.now() >= end) throw new DatabaseBusy('another process keeps its write lock')
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }
}

/** Beyond 2^53 the driver rounds in silence, and a rounded amount of money must not pass. */
function assertExact(row: unknown): void {
  for (const value of Object.values(row as object)) {
    if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) {
      throw new Error(`not an exact whole number: ${value}`)
    }
  }
}

/** A statement to run once for each of these lists of parameters. */
interface ForEachRow extends CompiledQuery {
  readonly rows: readonly (readonly unknown[])[]
}

/** How many rows one run of a statement has changed. */
export interface Changed {
  changes: number
}

/** The statement with other parameters, again and again; its own are only placeholders. It answers `Changed` for each. */
export function forEachRow(query: CompiledQuery, rows: ForEachRow['rows']): ForEachRow {
  return { ...query, rows }
}

/** Statements that are a whole transaction together. */
interface InOneBreath extends CompiledQuery {
  readonly together: readonly CompiledQuery[]
}

/** A transaction of these statements, with no promise between its begin and its commit; answers what the last one answers. */
export function inOneBreath(together: readonly CompiledQuery[]): CompiledQuery {
  const transaction: InOneBreath = { ...CompiledQuery.raw('begin immediate'), together }
  return transaction
}

class SqliteConnection implements DatabaseConnection {
  readonly #db: Database.Database
  readonly #statements = new Map<string, Database.Statement>()
  /** Iterations that stand open, during which the handle runs nothing else. */
  #streams = 0

  constructor(db: Database.Database) {
    this.#db = db
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if ('together' in query) {
      return (await whenUnlocked(() => this.#together((query as InOneBreath).together))) as QueryResult<R>
    }
    return this.#execute(query) as QueryResult<R>
  }

  atOnce(queries: readonly CompiledQuery[]): unknown[] | null {
    if (this.#streams > 0 || this.#db.inTransaction) return null
    try {
      return this.#together(queries).rows
    } catch (error) {
      if (sqliteFault(error)?.kind === 'contention') return null
      throw error
    }
  }

  #together(queries: readonly CompiledQuery[]): QueryResult<unknown> {
    try {
      this.#prepare('begin immediate').run()
      let answer: QueryResult<unknown> = { rows: [] }
      for (const query of queries) answer = this.#execute(query)
      this.#prepare('commit').run()
      return answer
    } catch (error) {
      if (this.#db.inTransaction) this.#prepare('rollback').run()
      throw error
    }
  }

  #execute(query: CompiledQuery): QueryResult<unknown> {
    const statement = this.#prepare(query.sql)
    if ('rows' in query) {
      return { rows: (query as ForEachRow).rows.map((row): Changed => statement.run(row)) }
    }
    if (statement.reader) {
      const rows = statement.all(query.parameters)
      for (const row of rows) assertExact(row)
      return { rows }
    }
    const { changes, lastInsertRowid } = statement.run(query.parameters)
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
  }

  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    // A statement of its own: a kept one could be asked again while this iteration stands open.
    this.#streams += 1
    try {
      for (const row of this.#db.prepare(query.sql).iterate(query.parameters)) {
        assertExact(row)
        yield { rows: [row as R] }
      }
    } finally {
      this.#streams -= 1
    }
  }

  close(): void {
    this.#statements.clear()
    this.#db.close()
  }

  #prepare(sql: string): Database.Statement {
    const kept = this.#statements.get(sql)
    if (kept) return kept
    const statement = this.#db.prepare(sql)
    if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear()
    this.#statements.set(sql, statement)
    return statement
  }
}
