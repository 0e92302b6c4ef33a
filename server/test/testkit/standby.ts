import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { preparePostgres, unprivilegedAccount } from '../../../scripts/testing/postgres-binaries.ts'
import { collectErrors, freePort, untilReady } from '../../../scripts/testing/postgres-server.ts'

/** A PostgreSQL server of its own, as a superuser without a password. */
export interface PostgresNode {
  port: number
  /** Of the database `postgres`. */
  url: string
  /** Starts it again on its port after `stop`. */
  start(): Promise<void>
  /** `fast` ends it in order; `kill` ends it as a crash does. */
  stop(how?: 'fast' | 'kill'): Promise<void>
  /** Stops every process of the server without ending it (SIGSTOP), until `thaw`. */
  freeze(): void
  thaw(): void
  /** Runs one statement on a connection of its own; returns its rows. */
  // biome-ignore lint/suspicious/noExplicitAny: the rows of any statement
  query(statement: string): Promise<any[]>
  /** Changes settings that apply without a restart; an empty value resets one. */
  configure(settings: Record<string, string>): Promise<void>
  /**
   * Makes a standby that streams from this server. `name`: as `synchronous_standby_names` may list it. `port`: of a server that was
   * stopped; otherwise a free one. One that does not follow is a second primary on the same timeline, as a copied machine is.
   */
  addStandby(name: string, port?: number, options?: { follows: boolean }): Promise<PostgresNode>
  /** Makes a standby a primary. */
  promote(): Promise<void>
}

export interface PostgresCluster {
  primary: PostgresNode
  /** Ends and removes every server. */
  close(): Promise<void>
}

/** The test run's own server keeps no log for standbys; these servers do. */
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'fsync=off',
  'wal_keep_size=256MB',
  'hot_standby_feedback=on',
]

/** Starts a primary from the PostgreSQL of the install. `settings`: further ones, such as `max_connections=20`. */
export async function startCluster(settings: string[] = []): Promise<PostgresCluster> {
  const account = unprivilegedAccount()
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-cluster-'))
  if (account) chownSync(folder, account.uid, account.gid)
  chmodSync(folder, 0o711)
  const { initdb, postgres } = await preparePostgres(folder, account)
  const nodes: PostgresNode[] = []
  const run = async (program: string, args: string[]) => {
    const child = spawn(program, args, { ...account, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    const errors = collectErrors(child)
    const [code] = await once(child, 'close')
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${errors()}`)
  }

  async function open(data: string, wanted?: number): Promise<PostgresNode> {
    const port = wanted ?? (await freePort())
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`
    let server: ReturnType<typeof spawn> | null = null
    const signalAll = (signal: NodeJS.Signals) => {
      for (const pid of server?.pid ? [server.pid, ...childrenOf(server.pid)] : [])
        signalIfRunning(pid, signal)
    }
    const query = async (statement: string) => {
      const client = new Client({ connectionString: url })
      client.on('error', () => {})
      await client.connect()
      try {
        return (await client.query(statement)).rows
      } finally {
        await client.end()
      }
    }
    const node: PostgresNode = {
      port,
      url,
      async start() {
        const all = [...SETTINGS, ...settings].flatMap((text) => ['-c', text])
        server = spawn(postgres, ['-D', data, '-p', `${port}`, ...all], {
          ...account,
          cwd: folder,
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        const errors = collectErrors(server)
        if (!(await untilReady(server, errors))) throw new Error(`PostgreSQL did not start: ${errors()}`)
      },
      async stop(how = 'fast') {
        const child = server
        server = null
        if (!child || child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, 'close')
        if (how === 'fast') child.kill('SIGINT')
        else
          for (const pid of [child.pid ?? 0, ...childrenOf(child.pid ?? 0)]) signalIfRunning(pid, 'SIGKILL')
        await ended
      },
      freeze: () => signalAll('SIGSTOP'),
      thaw: () => signalAll('SIGCONT'),
      query,
      async configure(changes) {
        for (const [name, value] of Object.entries(changes)) {
          await query(value === '' ? `alter system reset ${name}` : `alter system set ${name} = '${value}'`)
        }
        await query('select pg_reload_conf()')
      },
      async addStandby(name, wanted, { follows } = { follows: true }) {
        const copy = join(folder, name)
        const client = new Client({ connectionString: url })
        await client.connect()
        try {
          await client.query('select pg_backup_start($1, true)', [name])
          // Files of the running server come and go, which cp reports; recovery puts them right.
          await run('sh', [
            '-c',
            `cp -a "${data}" "${copy}" || true; rm -rf "${copy}"/postmaster.* "${copy}"/pg_wal/*`,
          ])
          const { rows } = await client.query('select labelfile from pg_backup_stop(false)')
          writeFileSync(join(copy, 'backup_label'), rows[0].labelfile)
        } finally {
          await client.end()
        }
        if (follows) writeFileSync(join(copy, 'standby.signal'), '')
        else await run('sh', ['-c', `cp -a "${data}"/pg_wal/* "${copy}"/pg_wal/`])
        appendFileSync(
          join(copy, 'postgresql.auto.conf'),
          `primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres application_name=${name}'\n`,
        )
        if (account) execFileSync('chown', ['-R', `${account.uid}:${account.gid}`, copy])
        return open(copy, wanted)
      },
      async promote() {
        await query('select pg_promote()')
      },
    }
    nodes.push(node)
    await node.start()
    return node
  }

  const close = async () => {
    for (const node of nodes.toReversed()) {
      node.thaw()
      await node.stop('kill')
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    const data = join(folder, 'primary')
    mkdirSync(data, { mode: 0o700 })
    if (account) chownSync(data, account.uid, account.gid)
    await run(initdb, [
      ...['--pgdata', data, '--username=postgres', '--auth=trust', '--no-sync', '--encoding=UTF8'],
      ...['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
    ])
    return { primary: await open(data), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** The server's processes are its children; each is the leader of a session of its own. */
function childrenOf(parent: number): number[] {
  return execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, ppid]) => (pid !== undefined && ppid === parent ? [pid] : []))
}

function signalIfRunning(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
