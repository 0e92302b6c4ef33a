import {
  type CompiledQuery,
  Kysely,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
} from 'kysely'
import { DatabaseError, Pool, type PoolClient, type QueryConfig, type QueryResult, types } from 'pg'
import { BytesInParts } from './bytes-in-parts.ts'
import { type Database, runAtOnce, runTransaction } from './database.ts'
import { postgresFault } from './database-faults.ts'
import { queryInParts } from './query-in-parts.ts'
import type { Schema } from './schema.ts'
import { statementPatience } from './statement-patience.ts'

export interface PostgresDatabase extends Database {
  readonly dialect: 'postgresql'
  readonly url: string
  readonly pool: Pool
  readonly writer: Kysely<Schema>
}

const INT8 = 20
const NUMERIC = 1700

/** Sums and counts come as text; every one of ours is a whole number, and one that is not exact must not pass. */
function exactNumber(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new Error(`not an exact whole number: ${text}`)
  return value
}

/** A database that has stalled must not hold callers for ever: the longest set-wise statement takes a few seconds. */
const QUERY_TIMEOUT_MS = 60_000

/** `queryTimeoutMs`: how long one statement may take, 0 for as long as it likes. With `readOnly` the server refuses writes. */
export function openPostgres(
  url: string,
  options: { poolSize?: number; queryTimeoutMs?: number; readOnly?: boolean } = {},
): PostgresDatabase {
  const pool = new Pool({
    connectionString: url,
    ...(options.readOnly ? { options: '-c default_transaction_read_only=on' } : {}),
    max: options.poolSize ?? 10,
    connectionTimeoutMillis: 1500,
    idleTimeoutMillis: 30_000,
    query_timeout: options.queryTimeoutMs ?? QUERY_TIMEOUT_MS,
    types: {
      getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
        oid === INT8 || oid === NUMERIC
          ? exactNumber
          : types.getTypeParser(oid, format as 'text')) as typeof types.getTypeParser,
    },
  })
  // A connection that the server drops is reported by its next query; without a listener it would end the process.
  pool.on('error', () => {})
  pool.on('connect', (client: PoolClient) => client.on('error', () => {}))
  /** Statements that a connection prepares at their first use, by their text: only the few of the hot paths, which never change. */
  const prepared = new Map<string, string>()
  const dialect = new PostgresDialect({ pool: usedWhileSound(pool, prepared) })
  const writer = new Kysely<Schema>({ dialect })
  return {
    dialect: 'postgresql',
    url,
    pool,
    writer,
    reader: writer,
    transaction: (work) => runTransaction(writer, postgresFault, work),
    async writeAtOnce(statement, ...others) {
      if (!statement || others.length > 0) throw new Error('one statement, or it would be no transaction')
      if (!prepared.has(statement.sql)) prepared.set(statement.sql, `hot_${prepared.size + 1}`)
      return runAtOnce(writer, postgresFault, () => askAtOnce(pool, prepared, statement))
    },
    faultOf: postgresFault,
    async close() {
      await writer.destroy()
      // Kysely ends only a pool that it has used itself.
      if (!pool.ending) await pool.end()
    },
  }
}

/** A statement as the driver takes it, with the present work's patience where that is not the pool's own. */
function inPatience(text: string, values: readonly unknown[], name: string | undefined): QueryConfig {
  const patience = statementPatience()
  return {
    ...{ text, values: values as unknown[] },
    ...(name !== undefined && { name }),
    ...(patience !== undefined && { query_timeout: patience }),
  }
}

/** Names of statements that are prepared, by their text. */
type Prepared = ReadonlyMap<string, string>

/**
 * One statement over a connection of the pool, without Kysely, which has nothing to do for it: its way there and back, a dozen promises, was a
 * fifth of this process's work on a batch of clicks.
 */
async function askAtOnce(
  pool: Pool,
  prepared: Prepared,
  { sql, parameters }: CompiledQuery,
): Promise<QueryResult> {
  const connection = soundOrEnded(await pool.connect(), prepared)
  try {
    return await connection.query(sql, parameters)
  } finally {
    connection.release()
  }
}

/** The pool as Kysely uses it, without connections of which nobody knows what they still do. */
function usedWhileSound(pool: Pool, prepared: Prepared): PostgresPool {
  return {
    // Kysely's second form of `query`, with a cursor, is for streams, which nothing uses on PostgreSQL.
    connect: async () => soundOrEnded(await pool.connect(), prepared) as unknown as PostgresPoolClient,
    end: () => pool.end(),
    options: pool.options,
  }
}

/**
 * A statement that was not answered in time may still be under way, and the rollback behind it is never sent: the next
 * borrower of the connection would find an open transaction and commit it with its own. Such a connection is closed,
 * by which the server rolls back.
 */
function soundOrEnded(
  client: PoolClient,
  prepared: Prepared,
): { query(sql: string, parameters: readonly unknown[]): Promise<QueryResult>; release(): void } {
  let unsound: unknown
  const query = async (sql: string, parameters: readonly unknown[]) => {
    if (unsound !== undefined) throw unsound
    try {
      return await ask(client, inPatience(sql, parameters, prepared.get(sql)))
    } catch (error) {
      if (!(error instanceof DatabaseError)) unsound = error
      throw error
    }
  }
  return {
    query,
    release: () => client.release(unsound !== undefined),
  }
}

function ask(client: PoolClient, config: QueryConfig): Promise<QueryResult> {
  if (!(config.values?.at(-1) instanceof BytesInParts)) return client.query(config)
  return new Promise((resolve, reject) => {
    client.query(queryInParts(config, (error, result) => (error ? reject(error) : resolve(result))))
  })
}
