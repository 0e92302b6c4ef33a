import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unprivilegedAccount } from './postgres-binaries.ts'

/** A server of the PostgreSQL that this machine has installed, with its programs: the test run's own brings no pg_dump. */
export interface SystemPostgres {
  /** The folder of pg_dump, pg_restore and psql, which fit the server. */
  programs: string
  /** As the superuser, without a password. */
  url: string
  close(): Promise<void>
}

/** Where Debian's packages put the programs of each version. */
const PROGRAMS = '/usr/lib/postgresql/*/bin/pg_restore'

/** `null` where none is installed. */
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
  let log = ''
  await new Promise<void>((ready, failed) => {
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-4000)
      if (log.includes('ready to accept connections')) ready()
    })
    server.once('close', () => failed(new Error(`PostgreSQL did not start: ${log}`)))
  })
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}
