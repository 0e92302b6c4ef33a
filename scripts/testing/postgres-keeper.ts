/**
 * Keeps one throw-away PostgreSQL for a test run: prints its address once it answers, and stops and removes it
 * when its standard input ends. The input ends however the run ends, so no database outlives even a killed run.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Binaries, preparePostgres, unprivilegedAccount } from './postgres-binaries.ts'

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
    // Whatever it was still writing when it was told to stop would outlive the removal.
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
  const initialise = launch(initdb, [
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
  const said = listen(initialise)
  const [code] = await once(initialise, 'close')
  if (code !== 0) throw new Error(`initdb ended with ${code}: ${said()}`)
}

/**
 * What the service's promises rest on (fsync, synchronous_commit, full_page_writes) is as in use. The rest is for replicas, of which there
 * are none, and for disks: a test's pages are in memory, where asking another process to read one takes longer than reading it.
 */
const FOR_TESTS = ['wal_level=minimal', 'max_wal_senders=0', 'io_method=sync', 'update_process_title=off']
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=200',
  ...(asInUse ? [] : FOR_TESTS),
]

/** Starts the server on a free port; another port when somebody took that one in between. */
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
    const said = listen(server)
    const ready = new Promise<boolean>((resolve) => {
      server.stderr?.on('data', () => said().includes('ready to accept connections') && resolve(true))
      server.on('close', () => resolve(false))
    })
    if (await ready) return port
    if (tries === PORT_TRIES) throw new Error(`PostgreSQL did not start: ${said()}`)
  }
}

function listen(child: ChildProcess): () => string {
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-4000)
  })
  return () => text.trim()
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

/** A fast shutdown: nobody needs what is in it. */
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
