import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unprivilegedAccount } from './postgres-binaries.ts'
import { collectErrors, freePort, untilReady } from './postgres-server.ts'

/** A server of the machine's own PostgreSQL with its client programs: the test run's PostgreSQL has no pg_dump. */
export interface SystemPostgres {
  /** The folder of pg_dump, pg_restore and psql. */
  programs: string
  /** As the superuser, without a password. */
  url: string
  close(): Promise<void>
}

/** Where Debian's packages put the programs of each version. */
const PROGRAMS = '/usr/lib/postgresql/*/bin/pg_restore'

/** Returns `null` if none is installed. */
export async function openSystemPostgres(): Promise<SystemPostgres | null> {
  const versions = globSync(PROGRAMS).sort((a, b) => versionIn(a) - versionIn(b))
  const programs = versions.at(-1)?.replace(/\/pg_restore$/, '')
  if (!programs || globSync(join(programs, '{initdb,postgres,pg_dump,psql}')).length < 4) return null
  const account = unprivilegedAccount()
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-system-postgres-'))
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
  if (account) for (const path of [folder, data]) chownSync(path, account.uid, account.gid)
  const run = (program: string, args: string[]) =>
    spawn(join(programs, program), args, { ...account, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  const options = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync']
  const [code] = await once(
    run('initdb', ['-D', data, ...options]).on('error', () => {}),
    'close',
  )
  if (code !== 0) throw new Error(`initdb ended with ${code}`)
  const port = await freePort()
  const server = run('postgres', [
    ...['-D', data, '-p', `${port}`, '-c', 'listen_addresses=127.0.0.1'],
    ...['-c', 'unix_socket_directories=', '-c', 'fsync=off'],
  ])
  const ended = once(server, 'close')
  const errors = collectErrors(server)
  if (!(await untilReady(server, errors))) throw new Error(`PostgreSQL did not start: ${errors()}`)
  return {
    programs,
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    async close() {
      server.kill('SIGINT')
      await ended
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

function versionIn(path: string): number {
  return Number(/postgresql\/(\d+)\//.exec(path)?.[1] ?? 0)
}
