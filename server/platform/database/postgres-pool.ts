import { connect, type Socket } from 'node:net'
import type { PostgresPool, PostgresPoolClient } from 'kysely'
import {
  type ClientBase,
  DatabaseError,
  Pool,
  type PoolClient,
  type PoolConfig,
  type QueryConfig,
  type QueryResult,
} from 'pg'
import { SettingError } from '../config.ts'
import { within } from '../with-timeout.ts'
import { statementTimeout } from './database.ts'
import { isOfConnection, readOnlyError, WRITE_ACCESS, type WriteAccess } from './database-faults.ts'
import { ANSWER_TIMEOUT_MS, CONNECT_TIMEOUT_MS, clientFor, type PostgresHosts } from './postgres-hosts.ts'

export interface PoolOptions extends PoolConfig {
  max: number
  /** The longest that one statement may take unless `statementTimeout` says otherwise, ms; 0 for no limit. */
  queryTimeoutMs: number
  /** `write`: connections to servers that take reads only are errors. `guarded`: connections that would take writes are. */
  access: 'write' | 'guarded' | 'any'
  /** How long a caller waits for a connection, ms. */
  waitMs?: number | undefined
}

/**
 * The first pause before it is checked whether the server of an abandoned statement is still there, and the longest, ms. A server that
 * hangs has to take each check's connection before it takes others.
 */
const CHECK_HELD_MS = { first: 1000, longest: 8000 }
/** The least that a statement may take after its caller has waited for a connection, ms. */
const LEAST_TIMEOUT_MS = 100

/**
 * A pool of connections, none in an unknown state. A statement that timed out may still be running, for example a commit that waits for
 * a standby. Its connection keeps its place in the pool until the server is done with it or is gone, so that the server never has more
 * processes of this pool than `max`; then it is closed, and the server rolls back what was open.
 */
export class BoundedPool {
  readonly pool: Pool
  readonly #hosts: PostgresHosts
  readonly #queryTimeoutMs: number
  readonly #access: PoolOptions['access']
  readonly #waitMs: number
  readonly #held = new Map<PoolClient, () => void>()
  #nextCheck: NodeJS.Timeout | undefined

  constructor(hosts: PostgresHosts, { queryTimeoutMs, access, waitMs, ...config }: PoolOptions) {
    this.#hosts = hosts
    this.#queryTimeoutMs = queryTimeoutMs
    this.#access = access
    this.#waitMs = waitMs ?? (access === 'guarded' ? ANSWER_TIMEOUT_MS : CONNECT_TIMEOUT_MS)
    this.pool = new Pool({
      Client: clientFor(hosts),
      connectionString: hosts.connectionString,
      // Callers give up earlier, the connection that is made does not.
      connectionTimeoutMillis: Math.max(ANSWER_TIMEOUT_MS, this.#waitMs),
      ...(access !== 'any' && { onConnect: (client) => this.#checkAccess(client) }),
      idleTimeoutMillis: 30_000,
      // A server that vanished without a word is noticed.
      keepAlive: true,
      keepAliveInitialDelayMillis: 5000,
      ...config,
    })
    // The next query reports a dropped connection. Without a listener the error event would end the process.
    this.pool.on('error', () => {})
    this.pool.on('connect', (client: PoolClient) => client.on('error', () => {}))
  }

  /** As Kysely uses it. Kysely's second form of `query`, with a cursor, is for streams, which nothing uses on PostgreSQL. */
  get forKysely(): PostgresPool {
    return {
      connect: () => this.connect() as unknown as Promise<PostgresPoolClient>,
      end: () => this.end(),
      options: this.pool.options,
    } as unknown as PostgresPool
  }

  /** Takes a connection until `release`. After a failure that leaves it in an unknown state it refuses further statements. */
  async connect() {
    const begun = performance.now()
    const client = await this.#take().catch((error: unknown) => {
      // Perhaps all connections lead to a primary that hangs and was replaced.
      this.#hosts.look()
      throw error
    })
    let waited = performance.now() - begun
    let failure: unknown
    let isServerDone = false
    return {
      query: async (text: string, values: readonly unknown[], name?: string): Promise<QueryResult> => {
        if (failure !== undefined) throw failure
        const limit = statementTimeout() ?? this.#queryTimeoutMs
        try {
          return await client.query({
            text,
            values: values as unknown[],
            ...(name !== undefined && { name }),
            ...(limit > 0 && { query_timeout: Math.max(limit - waited, LEAST_TIMEOUT_MS) }),
          } as QueryConfig)
        } catch (error) {
          if (!(error instanceof DatabaseError) || isOfConnection(error)) failure = error
          if (isTimeout(error)) client.once('drain', () => (isServerDone = true))
          throw error
        } finally {
          waited = 0
        }
      },
      release: () => {
        if (failure === undefined) return client.release()
        if (isTimeout(failure) && !isServerDone) return this.#hold(client)
        // A server that became a standby stays one: a new connection may lead to the primary.
        this.#hosts.forget()
        client.release(true)
      },
    }
  }

  /** One statement on any connection. With `name` the connection prepares it at its first use. */
  async query(text: string, values: readonly unknown[], name?: string): Promise<QueryResult> {
    const connection = await this.connect()
    try {
      return await connection.query(text, values, name)
    } finally {
      connection.release()
    }
  }

  /** Callers that wait for a connection still get it; then connections that are being made for no one are ended. */
  async end(): Promise<void> {
    await Promise.allSettled(this.#hosts.awaited)
    for (const letGo of [...this.#held.values()]) letGo()
    this.#hosts.endConnecting()
    if (!this.pool.ending) await this.pool.end()
  }

  #hold(client: PoolClient): void {
    const letGo = () => {
      if (!this.#held.delete(client)) return
      if (this.#held.size === 0) clearTimeout(this.#nextCheck)
      client.release(true)
    }
    this.#held.set(client, letGo)
    client.once('drain', letGo)
    client.once('end', letGo)
    if (this.#held.size === 1) this.#checkAfter(CHECK_HELD_MS.first)
  }

  #checkAfter(ms: number): void {
    clearTimeout(this.#nextCheck)
    this.#nextCheck = setTimeout(async () => {
      await this.#releaseLost()
      if (this.#held.size > 0) this.#checkAfter(Math.min(2 * ms, CHECK_HELD_MS.longest))
    }, ms).unref()
  }

  /** Lets go of connections whose server is gone: it cannot report that, and TCP takes many minutes to notice. */
  async #releaseLost(): Promise<void> {
    this.#hosts.look()
    const byServer = Map.groupBy(this.#held, ([client]) => {
      const { remoteAddress, remotePort } = client.connection.stream as Socket
      return `${remotePort} ${remoteAddress}`
    })
    const releases = [...byServer.values()].map(async (held) => {
      const [[client] = []] = held
      if (client && !(await isReachable(client))) for (const [, letGo] of held) letGo()
    })
    await Promise.all(releases)
  }

  /** A connection. One that comes when the caller has given up goes to the next caller. */
  #take(): Promise<PoolClient> {
    const coming = this.pool.connect()
    this.#hosts.awaited.add(coming)
    const giveUp = () => {
      coming.then((client) => client.release()).catch(() => {})
      return new Error('timeout exceeded when trying to connect')
    }
    return within(this.#waitMs, coming, giveUp).finally(() => this.#hosts.awaited.delete(coming))
  }

  /** Refuses a connection without the pool's access. */
  async #checkAccess(client: ClientBase): Promise<void> {
    const question = { text: WRITE_ACCESS, query_timeout: ANSWER_TIMEOUT_MS }
    const { rows } = await client.query<WriteAccess>(question)
    const [access = { read_only: false, standby: false }] = rows
    if (this.#access === 'guarded') {
      // A pooler may drop the option of the connection.
      if (!access.read_only)
        throw new SettingError(
          'DATABASE_DIRECT_URL',
          'must name the database itself: the pooler at this address makes no read-only connections',
        )
    } else if (access.read_only) {
      // A standby, or a primary that was just replaced by one.
      this.#hosts.forget()
      throw readOnlyError(access)
    }
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout'
}

/** Whether the machine that this connection leads to still takes connections. One that hangs does, one that vanished does not. */
function isReachable(client: PoolClient): Promise<boolean> {
  const { remoteAddress: host, remotePort: port } = client.connection.stream as Socket
  if (host === undefined || port === undefined) return Promise.resolve(true)
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: CONNECT_TIMEOUT_MS })
    const answer = (isThere: boolean) => {
      socket.destroy()
      resolve(isThere)
    }
    socket.on('connect', () => answer(true))
    socket.on('timeout', () => answer(false))
    socket.on('error', () => answer(false))
  })
}
