import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unprivilegedAccount } from '../../../scripts/testing/postgres-binaries.ts'
import { freePort } from '../../../scripts/testing/postgres-server.ts'

const PROGRAM = process.env.TEST_PGBOUNCER ?? 'pgbouncer'

/** Prepared statements in transaction mode came with 1.21. */
export function hasPgBouncer(): boolean {
  const { stdout } = spawnSync(PROGRAM, ['--version'], { encoding: 'utf8' })
  const [, major = 0, minor = 0] = /PgBouncer (\d+)\.(\d+)/.exec(stdout ?? '') ?? []
  return Number(major) > 1 || Number(minor) >= 21
}

/** Starts a transaction pooler of five connections in front of the server on this port, as the guide configures it. */
export async function startPgBouncer(serverPort: number) {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-pgbouncer-'))
  chmodSync(folder, 0o755)
  const port = await freePort()
  writeFileSync(join(folder, 'users'), '"postgres" ""\n')
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=127.0.0.1 port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${folder}/users
pool_mode = transaction
default_pool_size = 5
max_prepared_statements = 200
server_login_retry = 1
`,
  )
  const child: ChildProcess = spawn(PROGRAM, [join(folder, 'pgbouncer.ini')], {
    ...unprivilegedAccount(),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let text = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (text.includes('process up')) resolve()
    })
    child.on('exit', () => reject(new Error(`PgBouncer ended: ${text}`)))
  })
  return {
    port,
    async close() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
