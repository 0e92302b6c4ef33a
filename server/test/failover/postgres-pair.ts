import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client, type QueryResultRow } from 'pg'
import {
  type Account,
  type Binaries,
  preparePostgres,
  unprivilegedAccount,
} from '../../../scripts/testing/postgres-binaries.ts'
import { collectErrors, freePort, untilReady } from '../../../scripts/testing/postgres-server.ts'

const run = promisify(execFile)
const PATIENCE_MS = 20_000
const POLL_MS = 20

/** Durability settings (fsync, synchronous_commit, full_page_writes) keep their defaults. */
const SETTINGS = [
  "listen_addresses = '127.0.0.1'",
  "unix_socket_directories = ''",
  'max_connections = 100',
  'wal_level = replica',
  'max_wal_senders = 5',
  "wal_keep_size = '256MB'",
  'hot_standby = on',
  'io_method = sync',
  "shared_buffers = '32MB'",
]

/** One PostgreSQL server on a port of its own; it may be primary or standby. Linux only: its processes are found in /proc. */
export class PostgresNode {
  readonly name: string
  readonly port: number
  readonly data: string
  readonly #binaries: Binaries
  readonly #account: Account | undefined
  #server: ChildProcess | null = null

  constructor(
    place: { folder: string; binaries: Binaries; account: Account | undefined },
    name: string,
    port: number,
  ) {
    this.name = name
    this.port = port
    this.data = join(place.folder, name)
    this.#binaries = place.binaries
    this.#account = place.account
  }

  get isRunning(): boolean {
    return this.#server !== null && this.#server.exitCode === null && this.#server.signalCode === null
  }

  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`
  }

  /** Makes a new, empty data folder. */
  async initialize(): Promise<void> {
    await mkdir(this.data, { mode: 0o700 })
    if (this.#account) await chown(this.data, this.#account.uid, this.#account.gid)
    const options = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync']
    const builtin = ['--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    await run(this.#binaries.initdb, [`--pgdata=${this.data}`, ...options, ...builtin], {
      ...this.#account,
      cwd: '/',
    })
    await appendFile(join(this.data, 'postgresql.conf'), `${SETTINGS.join('\n')}\n`)
  }

  /** Resolves once it accepts connections; a standby accepts reads. */
  async start(): Promise<void> {
    const server = spawn(this.#binaries.postgres, ['-D', this.data, '-p', String(this.port)], {
      ...this.#account,
      cwd: this.data,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#server = server
    const errors = collectErrors(server)
    const isReady = await Promise.race([
      untilReady(server, errors),
      pause(PATIENCE_MS, false, { ref: false }),
    ])
    if (!isReady) throw new Error(`${this.name} did not start: ${errors()}`)
  }

  /** A clean shutdown, which waits until a standby has all of its WAL. */
  stop(): Promise<void> {
    return this.#end(() => this.#server?.kill('SIGINT'))
  }

  /** The machine is gone: no process of it gets to do anything more. */
  kill(): Promise<void> {
    return this.#end(() => this.#signalAll('SIGKILL'))
  }

  /** Its connections stay, and nothing answers. */
  freeze(): Promise<void> {
    return this.#signalAll('SIGSTOP')
  }

  thaw(): Promise<void> {
    return this.#signalAll('SIGCONT')
  }

  /** Runs a statement on a connection of its own. */
  async query<Row extends QueryResultRow>(sql: string, database?: string): Promise<Row[]> {
    const client = new Client({ connectionString: this.url(database), connectionTimeoutMillis: 5000 })
    client.on('error', () => undefined)
    await client.connect()
    try {
      return (await client.query<Row>(sql)).rows
    } finally {
      await client.end()
    }
  }

  /** Empty: commits wait for no standby. `*`: for any one. */
  async setSynchronousStandbys(names: '' | '*'): Promise<void> {
    await this.query(`alter system set synchronous_standby_names = '${names}'`)
    await this.query('select pg_reload_conf()')
  }

  /** Resolves once it takes writes. */
  async promote(): Promise<void> {
    await this.query('select pg_promote(true, 20)')
  }

  /** Replaces the data folder by a copy of a running primary's, and starts as its standby. */
  async followFrom(primary: PostgresNode): Promise<void> {
    await rm(this.data, { recursive: true, force: true, maxRetries: 5 })
    const client = new Client({ connectionString: primary.url() })
    await client.connect()
    try {
      await client.query(`select pg_backup_start('copy', true)`)
      // Files may vanish while they are copied: their removal is in the WAL.
      await run('cp', ['-a', primary.data, this.data]).catch((error: { stderr?: string }) => {
        const lines = (error.stderr ?? '').trim().split('\n')
        if (!lines.every((line) => line.endsWith('No such file or directory'))) throw error
      })
      const { rows } = await client.query('select labelfile from pg_backup_stop(false)')
      for (const name of ['postmaster.pid', 'postmaster.opts'])
        await rm(join(this.data, name), { force: true })
      const conninfo = `host=127.0.0.1 port=${primary.port} user=postgres application_name=${this.name}`
      // What it does once it is promoted, and has no standby of its own.
      const settings = [`primary_conninfo = '${conninfo}'`, `synchronous_standby_names = ''`]
      await appendFile(join(this.data, 'postgresql.auto.conf'), `${settings.join('\n')}\n`)
      for (const [name, text] of [
        ['backup_label', rows[0].labelfile],
        ['standby.signal', ''],
      ]) {
        await writeFile(join(this.data, name), text, { mode: 0o600 })
        if (this.#account) await chown(join(this.data, name), this.#account.uid, this.#account.gid)
      }
    } finally {
      await client.end()
    }
    await this.start()
  }

  async #end(signal: () => unknown): Promise<void> {
    const server = this.#server
    if (!server || !this.isRunning) return
    const gone = once(server, 'exit')
    await signal()
    await gone
  }

  /** The first process is signaled first, so that it starts no others. */
  async #signalAll(signal: NodeJS.Signals): Promise<void> {
    const { pid } = this.#server ?? {}
    if (pid === undefined || !this.isRunning) return
    process.kill(pid, signal)
    for (const child of await childrenOf(pid)) {
      try {
        process.kill(child, signal)
      } catch {
        // It has ended.
      }
    }
  }
}

async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')))
  return pids.flatMap((pid, index) => {
    const stat = stats[index] ?? ''
    const [, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(ppid) === parent ? [Number(pid)] : []
  })
}

/** Two PostgreSQL servers on fixed ports, one the standby of the other, in a folder that `close` removes. */
export class PostgresPair {
  readonly #folder: string
  primary: PostgresNode
  /** Runs unless it was stopped, or promoted and not replaced yet. */
  standby: PostgresNode

  /** With a synchronous standby: a commit returns once both servers have it on disk. */
  static async open(): Promise<PostgresPair> {
    const folder = await mkdtemp(join(tmpdir(), 'affiliate-test-pair-'))
    await chmod(folder, 0o711)
    const account = unprivilegedAccount()
    const binaries = await preparePostgres(folder, account)
    const node = async (name: string) =>
      new PostgresNode({ folder, binaries, account }, name, await freePort())
    const pair = new PostgresPair(folder, await node('a'), await node('b'))
    try {
      await pair.primary.initialize()
      await pair.primary.start()
      await pair.attachStandby()
      return pair
    } catch (error) {
      await pair.close()
      throw error
    }
  }

  private constructor(folder: string, primary: PostgresNode, standby: PostgresNode) {
    this.#folder = folder
    this.primary = primary
    this.standby = standby
  }

  /** Makes the standby a copy of the primary, and synchronous. */
  async attachStandby(): Promise<void> {
    await this.standby.followFrom(this.primary)
    await this.untilReplicating('streaming')
    await this.primary.setSynchronousStandbys('*')
    await this.untilReplicating('sync')
  }

  /** The standby takes over; the former primary must have ended. Resolves once the new primary takes writes. */
  async failOver(): Promise<void> {
    if (this.primary.isRunning) throw new Error('the primary still runs')
    await this.standby.promote()
    const former = this.primary
    this.primary = this.standby
    this.standby = former
  }

  async untilReplicating(state: 'streaming' | 'sync'): Promise<void> {
    const end = Date.now() + PATIENCE_MS
    for (;;) {
      const rows = await this.primary.query<{ state: string; sync_state: string }>(
        'select state, sync_state from pg_stat_replication',
      )
      if (rows.some((row) => row.state === state || row.sync_state === state)) return
      if (Date.now() > end) throw new Error(`the standby is not ${state}: ${JSON.stringify(rows)}`)
      await pause(POLL_MS)
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.primary.kill(), this.standby.kill()])
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
