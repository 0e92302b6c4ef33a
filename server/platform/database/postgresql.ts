import { hash } from 'node:crypto'
import { Kysely, PostgresDialect } from 'kysely'
import { type Pool, types } from 'pg'
import { type Database, refuseNested, runTransaction, withRetries } from './database.ts'
import { postgresFault } from './database-faults.ts'
import { PostgresHosts } from './postgres-hosts.ts'
import { BoundedPool, type PoolOptions } from './postgres-pool.ts'
import { Replica } from './postgres-replica.ts'
import type { Schema } from './schema.ts'

export interface PostgresDatabase extends Database {
  readonly dialect: 'postgresql'
  readonly url: string
  /** For what needs a session of its own: the same database without a transaction pooler between. */
  readonly directUrl: string
  readonly hosts: PostgresHosts
  /** Of DATABASE_READ_URL: see `readReplica`. */
  readonly replica: Replica | null
  /** Reads have connections of their own. */
  readonly pools: { readonly read: Pool; readonly write: Pool }
  readonly writer: Kysely<Schema>
  /** Notifies the listeners of a channel. `close` waits for it. */
  notify(channel: string, texts: readonly string[]): Promise<void>
}

const INT8 = 20
const NUMERIC = 1700

/**
 * Sums and counts arrive as text. All of ours are whole numbers; another one throws. One beyond 2^53 becomes a bigint, which no sum with
 * other amounts accepts.
 */
function exactNumber(text: string): number | bigint {
  const value = Number(text)
  if (Number.isSafeInteger(value)) return value
  if (!/^-?\d+$/.test(text)) throw new Error(`not an exact whole number: ${text}`)
  return BigInt(text)
}

/** Longer than any set-wise statement takes; a stalled database must not hold callers forever. */
const QUERY_TIMEOUT_MS = 60_000

const POOL_SIZE = 10
/** The part of the pool that is for transactions; the rest is for reads, which answer while all writes hang. */
const WRITES = 0.6

export interface PostgresOptions {
  poolSize?: number | undefined
  /** The longest that one statement may take, ms; 0 for no limit. */
  queryTimeoutMs?: number | undefined
  /** How long a caller waits for a connection, ms. */
  waitMs?: number | undefined
  /** The server refuses writes; it may be a standby. Otherwise a connection to a server that takes reads only is an error. */
  readOnly?: boolean | undefined
  /** What the server's own lists of connections show. */
  applicationName?: string | undefined
  /** Of the same database, where `url` is that of a transaction pooler. */
  directUrl?: string | undefined
  /** Of a replica; it gets as many connections as there are for reads. */
  readUrl?: string | undefined
}

export function openPostgres(url: string, options: PostgresOptions = {}): PostgresDatabase {
  const { readOnly = false } = options
  const hosts = new PostgresHosts(url, { readOnly })
  const size = options.poolSize ?? POOL_SIZE
  const writes = Math.max(1, Math.round(size * WRITES))
  const openPool = (
    max: number,
    at = hosts,
    access: PoolOptions['access'] = readOnly ? 'guarded' : 'write',
  ) =>
    new BoundedPool(at, {
      max,
      queryTimeoutMs: options.queryTimeoutMs ?? QUERY_TIMEOUT_MS,
      waitMs: options.waitMs,
      access,
      ...(options.applicationName !== undefined && { application_name: options.applicationName }),
      types: {
        getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
          oid === INT8 || oid === NUMERIC
            ? exactNumber
            : types.getTypeParser(oid, format as 'text')) as typeof types.getTypeParser,
      },
    })
  const writePool = openPool(writes)
  const readPool = openPool(Math.max(1, size - writes))
  const { readUrl } = options
  const replica =
    readUrl === undefined
      ? null
      : new Replica(openPool(Math.max(1, size - writes), new PostgresHosts(readUrl), 'any'), readPool)
  const preparedNames = new Map<string, string>()
  /** Names of the statements of `executeBatch`, by their text, since behind PgBouncer several processes share a server's connection. */
  const nameOf = (text: string) => {
    const name = preparedNames.get(text) ?? `batch_${hash('sha256', text, 'hex').slice(0, 32)}`
    preparedNames.set(text, name)
    return name
  }
  const writer = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: writePool.forKysely }) })
  const reader = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: readPool.forKysely }) })
  return {
    dialect: 'postgresql',
    url,
    directUrl: options.directUrl ?? url,
    hosts,
    replica,
    pools: { read: readPool.pool, write: writePool.pool },
    writer,
    reader,
    transaction: (work) => runTransaction(writer, postgresFault, work),
    async executeBatch(statement, ...others) {
      if (!statement || others.length > 0) throw new Error('only one statement is a transaction by itself')
      refuseNested(writer)
      const { sql, parameters } = statement
      const query = () => writePool.query(sql, parameters, nameOf(sql))
      return (await withRetries(postgresFault, query)).rows
    },
    async notify(channel, texts) {
      await writePool.query('select pg_notify($1, text) from unnest($2::text[]) as text', [channel, texts])
    },
    faultOf: postgresFault,
    async close() {
      await replica?.close()
      // Not by Kysely, whose `destroy` loses a connection that is being made.
      await Promise.all([writePool.end(), readPool.end()])
    },
  }
}
