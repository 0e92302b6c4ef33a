import type { Socket } from 'node:net'
import { Client, type ClientConfig } from 'pg'
import { SettingError } from '../config.ts'
import { READ_ONLY } from './database-faults.ts'
import { hostAddresses, hostOf } from './postgres-address.ts'

export const CONNECT_TIMEOUT_MS = 1500
/**
 * How long a server may take to answer a connection that it took, ms. Longer than callers wait: a server that hangs answers its connections
 * in their order, so each that is given up delays those behind it.
 */
export const ANSWER_TIMEOUT_MS = 10_000

/** What a reachable server says of itself. */
interface Server {
  address: string
  isWritable: boolean
  /** Of the cluster; `null` if the role may not read it. */
  systemId: string | null
  /** When it started: the same server by two names has the same. */
  startedAt: string
}

interface Unreachable {
  address: string
  error: NodeJS.ErrnoException
}

/**
 * Finds the primary among the hosts of a PostgreSQL address. The host that was found last is used until a connection to it fails;
 * then all are asked, at the same time.
 */
export class PostgresHosts {
  readonly addresses: readonly string[]
  /** For the driver, whose client then goes to the primary. */
  readonly connectionString: string
  #primary: string | null = null
  #search: Promise<string> | null = null
  /** The open connections and the address of each. */
  readonly #clients = new Map<Client, string>()
  readonly connecting = new Set<Client>()

  /** With `readOnly` the servers refuse writes of these connections. */
  constructor(url: string, options: { readOnly?: boolean } = {}) {
    this.addresses = hostAddresses(url)
    this.connectionString = hostAddresses(url, options)[0] ?? ''
  }

  /** The address of the primary. Throws with the code 25006 where only standbys answer, else with the first host's error. */
  find(): Promise<string> {
    const [only] = this.addresses
    if (this.addresses.length === 1 && only !== undefined) return Promise.resolve(only)
    if (this.#primary !== null) return Promise.resolve(this.#primary)
    this.#search ??= this.#ask().finally(() => {
      this.#search = null
    })
    return this.#search
  }

  /** A connection failed, or its server takes reads only: the next one asks all hosts again. */
  forget(): void {
    this.#primary = null
  }

  async #ask(): Promise<string> {
    const asked = this.addresses.map((address) => askServer(address))
    const writable = asked.map(async (answer) => {
      const server = await answer
      if (!('isWritable' in server && server.isWritable)) throw server
      return server.address
    })
    try {
      this.#primary = await Promise.any(writable)
      this.#endOthers(this.#primary)
      return this.#primary
    } catch {
      throw withoutPrimary(await Promise.all(asked))
    }
  }

  /** Asks all hosts again; if another one is the primary now, the connections to the former one end. */
  look(): void {
    if (this.addresses.length === 1) return
    this.forget()
    this.find().catch(() => {})
  }

  /** Connections that callers of any pool wait for. */
  readonly awaited = new Set<Promise<unknown>>()

  /** Notes a connection, also one that is being made; it is ended once another host is found to be the primary. */
  keep(client: Client, address: string): void {
    this.#clients.set(client, address)
    client.once('end', () => this.#clients.delete(client))
  }

  /** Ends the connections that are being made. */
  endConnecting(): void {
    for (const client of this.connecting) client.connection.stream.destroy()
  }

  /** The former primary may hang and never answer. */
  #endOthers(primary: string): void {
    for (const [client, address] of this.#clients) {
      if (address !== primary) client.connection.stream.destroy()
    }
  }

  /**
   * Refuses hosts that are not one cluster with one primary. Hosts that cannot be reached are left out, unless none can. Throws
   * `SettingError` that names `setting`.
   */
  async check(setting: string): Promise<void> {
    if (this.addresses.length === 1) return
    const answers = await Promise.all(this.addresses.map((address) => askServer(address)))
    const servers = answers.filter((answer) => 'isWritable' in answer)
    const primaries = servers.filter((server) => server.isWritable)
    if (primaries.length === 0) throw withoutPrimary(answers)
    const foreign = differing(servers, 'systemId')
    const problem = foreign
      ? 'are not one cluster (their system identifiers differ): name a primary and its standbys only'
      : 'both take writes: end the former primary, and rejoin it as a standby'
    const pair = foreign ?? differing(primaries, 'startedAt')
    if (pair !== null) throw new SettingError(setting, `${pair} ${problem}`)
  }
}

/** The first two servers that differ in `key`, for a message; `null` if all that tell it agree. */
function differing(servers: readonly Server[], key: 'systemId' | 'startedAt'): string | null {
  const known = servers.filter((server) => server[key] !== null)
  const other = known.find((server) => server[key] !== known[0]?.[key])
  return known[0] && other ? `${hostOf(known[0].address)} and ${hostOf(other.address)}` : null
}

function withoutPrimary(answers: readonly (Server | Unreachable)[]): Error {
  const states = answers.map((answer) => {
    const state = 'error' in answer ? answer.error.message || answer.error.code : 'takes reads only'
    return `${hostOf(answer.address)}: ${state}`
  })
  const failed = answers.find((answer) => 'error' in answer)
  const onlyStandbys = answers.some((answer) => !('error' in answer))
  const problem = onlyStandbys ? 'only standbys can be reached' : 'no host can be reached'
  const code = onlyStandbys ? READ_ONLY : (failed?.error.code ?? 'ETIMEDOUT')
  return Object.assign(new Error(`${problem} (${states.join('; ')})`), { code })
}

const STATE = `select current_setting('transaction_read_only') = 'off' as is_writable,
  extract(epoch from pg_postmaster_start_time())::text as started_at`

/** Runs `work` on a connection of its own. */
async function withClient<T>(client: Client, work: () => Promise<T>): Promise<T> {
  client.on('error', () => {})
  try {
    await client.connect()
    return await work()
  } finally {
    client.end().catch(() => {})
  }
}

async function askServer(address: string): Promise<Server | Unreachable> {
  const client = new Client({ connectionString: address })
  const timer = setTimeout(() => client.connection.stream.destroy(timeout()), CONNECT_TIMEOUT_MS)
  try {
    return await withClient(client, async () => {
      const { rows } = await client.query(STATE)
      const systemId = await systemIdOf(client)
      return { address, isWritable: rows[0]?.is_writable, startedAt: rows[0]?.started_at, systemId }
    })
  } catch (error) {
    return { address, error: error as NodeJS.ErrnoException }
  } finally {
    clearTimeout(timer)
  }
}

function timeout(): Error {
  return Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })
}

/** The identifier of the cluster, the same on its primary and all standbys; `null` if the role may not read it. */
async function systemIdOf(client: Pick<Client, 'query'>): Promise<string | null> {
  try {
    const { rows } = await client.query('select system_identifier::text as id from pg_control_system()')
    return rows[0]?.id ?? null
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === '42501') return null
    throw error
  }
}

/** What tells databases apart, the same on a primary and its standbys. With one host it may be a standby. */
export async function identityOf(url: string): Promise<{ database: string; systemId: string | null }> {
  const timeouts = { connectionTimeoutMillis: CONNECT_TIMEOUT_MS, query_timeout: CONNECT_TIMEOUT_MS }
  const client = clientOf(url, timeouts)
  return withClient(client, async () => {
    const { rows } = await client.query('select current_database() as name')
    return { database: rows[0]?.name, systemId: await systemIdOf(client) }
  })
}

/** The driver's client class for these hosts: it connects to the primary, within `CONNECT_TIMEOUT_MS` if the host does not answer at all. */
export function clientFor(hosts: PostgresHosts): typeof Client {
  return class extends Client {
    constructor(config?: string | ClientConfig) {
      super(config)
      // The server may be gone for good.
      this.on('error', () => hosts.forget())
    }

    override connect(): Promise<Client>
    override connect(callback: (error: Error) => void): void
    override connect(callback?: (error: Error) => void): Promise<Client> | undefined {
      const connecting = this.#connectToPrimary()
      if (!callback) return connecting
      connecting.then(() => (callback as (error?: Error) => void)(), callback)
    }

    async #connectToPrimary(): Promise<Client> {
      const address = await hosts.find()
      const { stream } = this.connection
      // The pool gave up meanwhile.
      if (stream.destroyed) throw timeout()
      if (hosts.addresses.length > 1) {
        const { hostname, port } = new URL(address)
        Object.assign(this, { host: hostname.replace(/^\[(.+)\]$/, '$1'), port: Number(port || 5432) })
      }
      hosts.keep(this, address)
      hosts.connecting.add(this)
      const giveUp = setTimeout(() => {
        if ((stream as Socket).connecting) stream.destroy(timeout())
      }, CONNECT_TIMEOUT_MS)
      try {
        await super.connect()
        return this
      } catch (error) {
        hosts.forget()
        throw error
      } finally {
        clearTimeout(giveUp)
        hosts.connecting.delete(this)
      }
    }
  }
}

/** A client of the primary that `url` names, for one connection. */
export function clientOf(url: string, config: ClientConfig = {}): Client {
  const hosts = new PostgresHosts(url)
  const HostClient = clientFor(hosts)
  return new HostClient({ ...config, connectionString: hosts.connectionString })
}
