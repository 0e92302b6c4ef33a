import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import { type ClientBase, DatabaseError, Pool, type PoolClient, type QueryConfig, types } from 'pg'
import { type Database, refuseNested, runTransaction, statementTimeout, withRetries } from './database.ts'
import { postgresFault } from './database-faults.ts'
import { CONNECT_TIMEOUT_MS, clientFor, PostgresHosts, READ_ONLY } from './postgres-hosts.ts'
import type { Schema } from './schema.ts'

export interface PostgresDatabase extends Database {
  readonly dialect: 'postgresql'
  readonly url: string
  readonly hosts: PostgresHosts
  readonly pool: Pool
  readonly writer: Kysely<Schema>
}

const INT8 = 20
const NUMERIC = 1700

/** Sums and counts arrive as text. All of ours are whole numbers; an inexact one must fail. */
function exactNumber(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new Error(`not an exact whole number: ${text}`)
  return value
}

/** Longer than any set-wise statement takes; a stalled database must not hold callers forever. */
const QUERY_TIMEOUT_MS = 60_000

export interface PostgresOptions {
  poolSize?: number | undefined
  /** The longest that one statement may take, ms; 0 for no limit. */
  queryTimeoutMs?: number
  /** The server refuses writes; it may be a standby. Otherwise a connection to a server that takes reads only is an error. */
  readOnly?: boolean | undefined
  /** What the server's own lists of connections show. */
  applicationName?: string | undefined
}

export function openPostgres(url: string, options: PostgresOptions = {}): PostgresDatabase {
  const hosts = new PostgresHosts(url)
  const pool = new Pool({
    Client: clientFor(hosts),
    connectionString: hosts.addresses[0],
    ...(options.readOnly
      ? { options: '-c default_transaction_read_only=on' }
      : { verify: refuseReadOnly(hosts) }),
    ...(options.applicationName !== undefined && { application_name: options.applicationName }),
    max: options.poolSize ?? 10,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: 30_000,
    // A server that vanished without a word is noticed.
    keepAlive: true,
    keepAliveInitialDelayMillis: 5000,
    query_timeout: options.queryTimeoutMs ?? QUERY_TIMEOUT_MS,
    types: {
      getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
        oid === INT8 || oid === NUMERIC
          ? exactNumber
          : types.getTypeParser(oid, format as 'text')) as typeof types.getTypeParser,
    },
  })
  // The next query reports a dropped connection. Without a listener the error event would end the process.
  pool.on('error', () => {})
  pool.on('connect', (client: PoolClient) => client.on('error', () => {}))
  /** Names of the statements of `executeBatch`, by their text; each connection prepares them at their first use. */
  const preparedNames = new Map<string, string>()
  const dialect = new PostgresDialect({ pool: closingAfterFailure(pool, hosts) })
  const writer = new Kysely<Schema>({ dialect })
  return {
    dialect: 'postgresql',
    url,
    hosts,
    pool,
    writer,
    reader: writer,
    transaction: (work) => runTransaction(writer, postgresFault, work),
    async executeBatch(statement, ...others) {
      if (!statement || others.length > 0) throw new Error('only one statement is a transaction by itself')
      refuseNested(writer)
      const { sql, parameters } = statement
      const name = preparedNames.get(sql) ?? `batch_${preparedNames.size + 1}`
      preparedNames.set(sql, name)
      const query = () => pool.query(queryConfig(sql, parameters, name))
      return (await withRetries(postgresFault, query)).rows
    },
    faultOf: postgresFault,
    async close() {
      await writer.destroy()
      // Kysely ends the pool only if it has used it.
      if (!pool.ending) await pool.end()
    },
  }
}

/** A standby, or a primary that was just replaced by one. The pool drops the connection without waiting for the server. */
function refuseReadOnly(hosts: PostgresHosts) {
  return (client: ClientBase, done: (error?: Error) => void): void => {
    const question = { text: 'show transaction_read_only', query_timeout: CONNECT_TIMEOUT_MS }
    client.query(question).then(
      ({ rows }) => {
        if (rows[0]?.transaction_read_only !== 'on') return done()
        hosts.forget()
        done(Object.assign(new Error('the server takes reads only'), { code: READ_ONLY }))
      },
      (error: Error) => done(error),
    )
  }
}

/**
 * The pool as Kysely uses it, without connections in an unknown state. After a timeout the statement may still be running, and no rollback
 * is sent: the next user of the connection would inherit the open transaction. Such a connection is closed, and the server rolls back.
 */
function closingAfterFailure(pool: Pool, hosts: PostgresHosts): PostgresPool {
  return {
    connect: async () => {
      const client = await pool.connect()
      let failure: unknown
      const query = async (text: string, values: readonly unknown[]) => {
        if (failure !== undefined) throw failure
        try {
          return await client.query(queryConfig(text, values))
        } catch (error) {
          // A server that became a standby stays one: a new connection may lead to the primary.
          if (!(error instanceof DatabaseError) || error.code === READ_ONLY) {
            failure = error
            hosts.forget()
          }
          throw error
        }
      }
      // Kysely's second form of `query`, with a cursor, is for streams, which nothing uses on PostgreSQL.
      return { query, release: () => client.release(failure !== undefined) } as unknown as PostgresPoolClient
    },
    end: () => pool.end(),
    options: pool.options,
  }
}

function queryConfig(text: string, values: readonly unknown[], name?: string): QueryConfig {
  const timeout = statementTimeout()
  return {
    text,
    values: values as unknown[],
    ...(name !== undefined && { name }),
    ...(timeout !== undefined && { query_timeout: timeout }),
  }
}
