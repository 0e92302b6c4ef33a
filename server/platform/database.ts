import { AsyncLocalStorage } from 'node:async_hooks'
import { type CompiledQuery, type Kysely, SqliteAdapter, type Transaction } from 'kysely'
import { DatabaseBusy, type DatabaseFault } from './database-faults.ts'
import type { Schema } from './schema.ts'

export type Dialect = 'sqlite' | 'postgresql'

/** Something to query: the reader, or a transaction. */
export type Queries = Kysely<Schema>

/** A transaction that is under way; only `Database.transaction` makes one. */
export type Tx = Transaction<Schema>

export interface Database {
  readonly dialect: Dialect
  /** For reads outside a transaction. On SQLite a connection of its own, so that no read waits for a writer. */
  readonly reader: Queries
  /**
   * Runs `work` in one transaction (`begin immediate` on SQLite) and commits. The whole of it runs again on a busy
   * database, a deadlock or a serialization failure, so it must have no effects outside the database: no network, and
   * whatever must happen afterwards goes through `afterCommit`. A transaction inside a transaction is refused: what
   * belongs together takes the `tx` of the outer one.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * The hot paths' transaction: one that is all said beforehand, so that nothing is waited for between its begin and its commit. On
   * PostgreSQL it is one statement, on SQLite one or several. Answers the rows of the last one; repeated as `transaction` is.
   */
  writeAtOnce<Row>(...statements: CompiledQuery[]): Promise<Row[]>
  /** What a database error means, the same on both dialects; `null` for an error that is not the database's. */
  faultOf(error: unknown): DatabaseFault | null
  close(): Promise<void>
}

/** Which database a query would go to. */
export function dialectOf(db: Queries): Dialect {
  return db.getExecutor().adapter instanceof SqliteAdapter ? 'sqlite' : 'postgresql'
}

const afterCommitWork = new WeakMap<object, (() => void)[]>()

/** Has `work` run once `tx` has committed, and never if it does not. `work` must not throw. */
export function afterCommit(tx: Tx, work: () => void): void {
  const list = afterCommitWork.get(tx)
  if (list) list.push(work)
  else afterCommitWork.set(tx, [work])
}

/** Thrown inside a transaction that finds another one was quicker: the whole of it runs again. */
export class LostRace extends Error {
  constructor(what: string) {
    super(`another transaction was quicker: ${what}`)
    this.name = 'LostRace'
  }
}

const MAX_TRIES = 6

/** The writer whose transaction the present work is part of. */
const underWay = new AsyncLocalStorage<Queries>()

/**
 * The one transaction wrapper of both dialects. With `turnPatienceMs`, for a writer of one connection, a transaction that
 * has not had its turn by then, all its tries together, is never begun and ends as `DatabaseBusy`.
 */
export async function runTransaction<T>(
  writer: Queries,
  faultOf: Database['faultOf'],
  work: (tx: Tx) => Promise<T>,
  turnPatienceMs: number | null = null,
): Promise<T> {
  refuseInside(writer)
  const giveUpAt = turnPatienceMs === null ? null : performance.now() + turnPatienceMs
  const { result, transaction } = await withRetries(faultOf, () =>
    underWay.run(writer, () =>
      inTurn(writer, giveUpAt, (connection) =>
        connection.transaction().execute(async (tx) => ({ result: await work(tx), transaction: tx })),
      ),
    ),
  )
  for (const run of afterCommitWork.get(transaction) ?? []) run()
  return result
}

/** Has `ask` run one statement that is a transaction by itself, again where `runTransaction` would. */
export async function runAtOnce<Row>(
  writer: Queries,
  faultOf: Database['faultOf'],
  ask: () => Promise<{ rows: unknown[] }>,
): Promise<Row[]> {
  refuseInside(writer)
  const { rows } = await withRetries(faultOf, ask)
  return rows as Row[]
}

/** The inner one would wait for ever for SQLite's one writer, which the outer one holds. */
function refuseInside(writer: Queries): void {
  if (underWay.getStore() === writer) throw new Error('a transaction inside a transaction: hand on its tx')
}

/** Runs `work` on a connection as soon as one is free; throws `DatabaseBusy` when none is by `giveUpAt`. */
export async function inTurn<T>(
  writer: Queries,
  giveUpAt: number | null,
  work: (connection: Queries) => Promise<T>,
): Promise<T> {
  if (giveUpAt === null) return writer.connection().execute(work)
  const waiting = new AbortController()
  const giveUp = () => waiting.abort(new DatabaseBusy('other transactions were before this one'))
  const timer = setTimeout(giveUp, giveUpAt - performance.now())
  const begin = (connection: Queries) => {
    clearTimeout(timer)
    return work(connection)
  }
  try {
    return await writer.connection().execute(begin, { signal: waiting.signal })
  } finally {
    clearTimeout(timer)
  }
}

/** Runs `work`, a whole transaction, again when somebody else was quicker: a few times, with growing pauses. */
export async function withRetries<T>(faultOf: Database['faultOf'], work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      const again = error instanceof LostRace || faultOf(error)?.kind === 'contention'
      if (!again || attempt >= MAX_TRIES) throw error
      await new Promise((resolve) => setTimeout(resolve, 5 * 2 ** attempt))
    }
  }
}
