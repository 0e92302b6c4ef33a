import { AsyncLocalStorage } from 'node:async_hooks'
import { type CompiledQuery, type Kysely, SqliteAdapter, sql, type Transaction } from 'kysely'
import { DatabaseBusy, type DatabaseFault } from './database-faults.ts'
import type { Schema } from './schema.ts'

export type Dialect = 'sqlite' | 'postgresql'

/** Something to query: the reader, or a transaction. */
export type Queries = Kysely<Schema>

/** An open transaction; only `Database.transaction` makes one. */
export type Tx = Transaction<Schema>

export interface Database {
  readonly dialect: Dialect
  /** For reads outside a transaction. On SQLite it has its own connection, so reads never wait for a writer. */
  readonly reader: Queries
  /**
   * Runs `work` in one transaction (`begin immediate` on SQLite) and commits. Retries the whole of `work` on a busy database, a deadlock or
   * a serialization failure, so `work` must have no effects outside the database; use `afterCommit` for those. Nested transactions throw:
   * pass on the outer `tx`.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Runs these statements as one transaction, for the hot paths: on SQLite one or more, without an `await` between begin and commit; on
   * PostgreSQL exactly one. Resolves with the rows of all statements after the commit. Retries as `transaction` does.
   */
  executeBatch<Row>(...statements: CompiledQuery[]): Promise<Row[]>
  /** Classifies a database error, the same on both dialects; `null` for any other error. */
  faultOf(error: unknown): DatabaseFault | null
  close(): Promise<void>
}

export function dialectOf(db: Queries): Dialect {
  return db.getExecutor().adapter instanceof SqliteAdapter ? 'sqlite' : 'postgresql'
}

/** The transaction under way. It is known by the calls that are part of it, because `tx` may be a copy with plugins. */
const running = new AsyncLocalStorage<{ writer: Queries; afterCommit: (() => void)[] }>()

/** Runs `work` once the transaction has committed; skips it on a rollback. `work` must not throw. */
export function afterCommit(_tx: Tx, work: () => void): void {
  const found = running.getStore()
  if (!found) throw new Error('not inside a transaction')
  found.afterCommit.push(work)
}

const units = new AsyncLocalStorage<{ tx: Tx | null }>()

/** The transaction of the unit of work that this call is part of; `null` outside one, and once it has ended. */
export function unitTransaction(): Tx | null {
  return units.getStore()?.tx ?? null
}

/**
 * Runs `work` in one transaction that all of its reads and transactions are part of, so that what several services do commits together. An
 * inner transaction that throws is undone alone. As any transaction, `work` may run more than once and makes no network call.
 */
export function unitOfWork<T>(database: Database, work: (tx: Tx) => Promise<T>): Promise<T> {
  return database.transaction((tx) => {
    const unit: { tx: Tx | null } = { tx }
    const end = () => {
      unit.tx = null
    }
    return units.run(unit, () => work(tx)).finally(end)
  })
}

/** Runs `work` as a part of an open transaction, and undoes it alone if it throws. */
export async function inSavepoint<T>(tx: Tx, work: (tx: Tx) => Promise<T>): Promise<T> {
  const callbacks = running.getStore()?.afterCommit ?? []
  const { length } = callbacks
  await sql`savepoint part`.execute(tx)
  try {
    const result = await work(tx)
    await sql`release savepoint part`.execute(tx)
    return result
  } catch (error) {
    callbacks.length = length
    // Without a connection there is nothing left to undo.
    await sql`rollback to savepoint part`.execute(tx).catch(() => {})
    throw error
  }
}

/** Throw it inside a transaction that lost a race against another one: the whole transaction runs again. */
export class WriteConflict extends Error {
  constructor(what: string) {
    super(`another transaction was quicker: ${what}`)
    this.name = 'WriteConflict'
  }
}

const MAX_TRIES = 6

/**
 * The transaction wrapper of both dialects. With `queueTimeoutMs`, for a writer with one connection, a transaction that could not begin by
 * then, all tries together, fails with `DatabaseBusy`.
 */
export async function runTransaction<T>(
  writer: Queries,
  faultOf: Database['faultOf'],
  work: (tx: Tx) => Promise<T>,
  queueTimeoutMs: number | null = null,
): Promise<T> {
  refuseNested(writer)
  const giveUpAt = queueTimeoutMs === null ? null : performance.now() + queueTimeoutMs
  const { result, afterCommit } = await withRetries(faultOf, () => {
    const afterCommit: (() => void)[] = []
    return running.run({ writer, afterCommit }, () =>
      withConnection(writer, giveUpAt, async (connection) => {
        const result = await connection.transaction().execute(work)
        return { result, afterCommit }
      }),
    )
  })
  for (const run of afterCommit) run()
  return result
}

/** Throws inside a transaction of `writer`: on SQLite the inner one would wait forever for the connection of the outer one. */
export function refuseNested(writer: Queries): void {
  if (running.getStore()?.writer === writer) throw new Error('nested transaction: pass on the outer tx')
}

/** Runs `work` on a connection as soon as one is free; throws `DatabaseBusy` when none is free by `giveUpAt`. */
export async function withConnection<T>(
  writer: Queries,
  giveUpAt: number | null,
  work: (connection: Queries) => Promise<T>,
): Promise<T> {
  if (giveUpAt === null) return writer.connection().execute(work)
  const abort = new AbortController()
  const giveUp = () => abort.abort(new DatabaseBusy('other transactions of this process came first'))
  const timer = setTimeout(giveUp, giveUpAt - performance.now())
  const begin = (connection: Queries) => {
    clearTimeout(timer)
    return work(connection)
  }
  try {
    return await writer.connection().execute(begin, { signal: abort.signal })
  } finally {
    clearTimeout(timer)
  }
}

/** Runs `work`, a whole transaction, and repeats it after a lost race: up to six times, with growing pauses. */
export async function withRetries<T>(faultOf: Database['faultOf'], work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      const retryable = error instanceof WriteConflict || faultOf(error)?.kind === 'contention'
      if (!retryable || attempt >= MAX_TRIES) throw error
      await new Promise((resolve) => setTimeout(resolve, 5 * 2 ** attempt))
    }
  }
}

/** Takes the lock of this name until the transaction ends. Does nothing on SQLite, where `tx` excludes all other writers. */
export async function advisoryLock(tx: Tx, name: string): Promise<void> {
  if (dialectOf(tx) === 'sqlite') return
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(tx)
}

/**
 * Runs `work` over one consistent snapshot of the database. For commands: on SQLite it holds the process's only reader and blocks
 * checkpoints.
 */
export function readSnapshot<T>(database: Database, work: (db: Queries) => Promise<T>): Promise<T> {
  return database.reader.connection().execute(async (connection) => {
    const begin =
      database.dialect === 'sqlite'
        ? sql`begin`
        : sql`begin transaction isolation level repeatable read, read only`
    await begin.execute(connection)
    try {
      return await work(connection)
    } finally {
      await sql`rollback`.execute(connection)
    }
  })
}

const timeouts = new AsyncLocalStorage<number>()

/** Runs work with a timeout of so many ms for each of its PostgreSQL statements, with the wait for a connection. */
const limited =
  (ms: number) =>
  <T>(work: () => T): T =>
    timeouts.run(ms, work)

/** For work that a client waits for: with what comes on top, it is answered within two seconds. */
export const withStatementTimeout = limited(1800)
/** For a read that the primary answers if the replica does not. */
export const withReplicaTimeout = limited(900)
/** For named jobs whose statements go over many rows. Other background work has the timeout of the connection. */
export const withLongStatements = limited(60_000)

/** The statement timeout of the current call in ms; `undefined` for the connection's own. */
export function statementTimeout(): number | undefined {
  return timeouts.getStore()
}
