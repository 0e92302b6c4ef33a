/**
 * Keeps one throw-away PostgreSQL for a test run: prints its address once it answers, and stops and removes it
 * when its standard input ends. The input ends however the run ends, so no database outlives even a killed run.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Binaries, preparePostgres, unprivilegedAccount } from './postgres-binaries.ts'
import { collectErrors, freePort, untilReady } from './postgres-server.ts'

const STOP_LIMIT = 10_000
const PORT_TRIES = 3
const asInUse = process.argv[2] === 'as-in-use'

const released = once(process.stdin.resume(), 'close')
let running: ChildProcess | undefined
let closing = false

async function keep(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'affiliate-test-postgres-'))
  const opening = open(directory)
  try {
    const url = await Promise.race([opening, released.then(() => null)])
    if (url === null) return
    process.stdout.write(`${url}\n`)
    await Promise.race([released, running && once(running, 'exit')])
  } finally {
    await stop()
    // Files that it still writes would be left after the removal.
    await opening.catch(() => undefined)
    await rm(directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function open(directory: string): Promise<string> {
  const account = unprivilegedAccount()
  await chmod(directory, 0o711)
  const binaries = await preparePostgres(directory, account)
  const password = randomBytes(16).toString('hex')
  const passwordFile = join(directory, 'password')
  await writeFile(passwordFile, password)
  const data = join(directory, 'data')
  await mkdir(data, { mode: 0o700 })
  if (account) for (const path of [passwordFile, data]) await chown(path, account.uid, account.gid)
  const launch = (program: string, args: string[]): ChildProcess => {
    if (closing) throw new Error('stopped while it was starting')
    running = spawn(program, args, { ...account, cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] })
    return running
  }
  await createCluster(launch, binaries, data, passwordFile)
  const port = await serve(launch, binaries, data)
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
}

type Launch = (program: string, args: string[]) => ChildProcess

/** Text sorts by code point as it does on SQLite, whatever the machine's language is. */
async function createCluster(
  launch: Launch,
  { initdb }: Binaries,
  data: string,
  passwordFile: string,
): Promise<void> {
  const initialize = launch(initdb, [
    `--pgdata=${data}`,
    '--username=postgres',
    `--pwfile=${passwordFile}`,
    '--auth=password',
    // Tests open thousands of connections, and checking the password as usual takes milliseconds of each.
    '--set=scram_iterations=1',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-sync',
    ...(asInUse ? [] : ['--no-data-checksums']),
  ])
  const errors = collectErrors(initialize)
  const [code] = await once(initialize, 'close')
  if (code !== 0) throw new Error(`initdb ended with ${code}: ${errors()}`)
}

/**
 * Durability settings (fsync, synchronous_commit, full_page_writes) keep their defaults. These settings drop what replicas need,
 * read pages directly (a test's pages are in memory), and start few workers for a hundred databases.
 */
const FOR_TESTS = [
  'wal_level=minimal',
  'max_wal_senders=0',
  'io_method=sync',
  'update_process_title=off',
  'autovacuum_naptime=5min',
]
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=200',
  ...(asInUse ? [] : FOR_TESTS),
]

/** Starts the server on a free port, and tries another port if that one was taken meanwhile. */
async function serve(launch: Launch, { postgres }: Binaries, data: string): Promise<number> {
  for (let tries = 1; ; tries++) {
    const port = await freePort()
    const server = launch(postgres, [
      '-D',
      data,
      '-p',
      `${port}`,
      ...SETTINGS.flatMap((text) => ['-c', text]),
    ])
    const errors = collectErrors(server)
    if (await untilReady(server, errors)) return port
    if (tries === PORT_TRIES) throw new Error(`PostgreSQL did not start: ${errors()}`)
  }
}

/** A fast shutdown. */
async function stop(): Promise<void> {
  closing = true
  const child = running
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGINT')
  const kill = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT)
  await gone
  clearTimeout(kill)
}

try {
  await keep()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}
process.stdin.destroy()
