// proof only
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { queuedMail } from '../../server/test/testkit/people.ts'
import { mustOnlyRead } from '../../server/test/testkit/reading-only.ts'
import { buildProgram } from '../program.ts'
import { openBooks } from './books.ts'
import { leavesOf } from './command-tree.ts'
import {
  AUDITED,
  freshEndpoint,
  OPERATOR_WORK,
  type Recipe,
  runOperatorWork,
  type World,
  way,
} from './operator-work.ts'
import { openProcessorStub } from './processor-stub.ts'

/** In place of what other tests say: a recipe, or why a command is looked at nowhere here. */
const OWN: Record<string, Recipe> = {
  serve: 'is the running service itself',
  demo: 'works on a database of its own',
  seed: 'refuses a database in use',
  'flagged walk': 'does what users suspend, offers vet and flagged resolve do, each at its own moment',
  'webhooks listen': 'looks for news as webhooks events does, without end',
  'db migrate': way(),
  // Of what is there: the recipes of other tests write one first.
  'mail show': ({ books }) => idIn(books, 'mails'),
  'endpoints show': ({ books }) => idIn(books, 'webhook_endpoints'),
  // No payout has been made.
  'payouts show': way('019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'),
  doctor: way(),
  'billing reconcile': way(),
  'webhooks replay': ({ books }) => ({
    args: [
      'draft-order',
      '--store',
      `s${books.shop.merchantId}.myshopify.com`,
      '--url',
      'http://127.0.0.1:9',
    ],
  }),
}
const COMMANDS = { ...OPERATOR_WORK, ...OWN }

/** These find fault with what a test offers them, and say so by the exit code. */
const MAY_FAIL = new Set(['doctor', 'payouts show', 'billing reconcile', 'webhooks replay', 'db backup'])

const WRITING = new Set([...Object.keys(AUDITED), 'ledger seal', 'billing reconcile', 'db migrate'])

/** Writing commands with options that only read. */
const DRY_RUNS: [string, Recipe][] = [
  ['users suspend', ({ books }) => ({ args: [books.creatorId, '--dry-run'] })],
  ['billing close', way('--as-of', '2099-01-01', '--dry-run')],
  ['payouts run', way('--dry-run')],
  ['keys rotate', way('--dry-run')],
]

async function idIn({ market }: World['books'], table: 'mails' | 'webhook_endpoints') {
  const { reader } = market.platform.database
  const { id } = await reader.selectFrom(table).select('id').limit(1).executeTakeFirstOrThrow()
  return { args: [id] }
}

async function openWorld(dialect: ReturnType<typeof testDialects>[number]): Promise<World> {
  const books = await openBooks(dialect)
  await queuedMail(books.market.platform, books.creatorId)
  await freshEndpoint({ books })
  return { books, stub: await openProcessorStub() }
}

async function closeWorld({ books, stub }: World): Promise<void> {
  await stub.close()
  await books.market.close()
}

async function run(world: World, name: string, recipe: Recipe, aside?: () => Promise<unknown>) {
  if (typeof recipe === 'string') return
  const made = await recipe(world)
  await aside?.()
  const { code, stderr } = await runOperatorWork(world, name, made)
  assert.ok(code === 0 || (code === 1 && MAY_FAIL.has(name)), `${name}: exit ${code}: ${stderr}`)
}

const all = suite('the commands')
all('have all been asked what they lock', () => {
  const names = leavesOf(buildProgram()).map(({ name }) => name)
  assert.equal(Object.keys(COMMANDS).sort(), names.sort())
})
all.run()

for (const dialect of testDialects()) {
  const it = suite(`locks of commands on ${dialect}`)
  let world: World
  it.before(async () => {
    world = await openWorld(dialect)
  })
  it.after(() => closeWorld(world))

  it('that only look are none that a writer holds or waits for', async () => {
    const { database } = world.books.market.platform
    const { promise: let_go, resolve: letGo } = Promise.withResolvers<void>()
    const { promise: held, resolve: hold } = Promise.withResolvers<void>()
    const holding = database.transaction(async (tx) => {
      if (dialect === 'postgresql') {
        const { rows } = await sql<{ name: string }>`
          select tablename as name from pg_tables where schemaname = 'public'`.execute(tx)
        // What stands against every write and every row that is locked, and against no read.
        for (const { name } of rows) await sql`lock table ${sql.table(name)} in exclusive mode`.execute(tx)
      }
      hold()
      await let_go
    })
    await held
    try {
      await setReadOnly(world, true)
      const reading = Object.entries(COMMANDS).filter(([name]) => !WRITING.has(name))
      for (const [name, recipe] of [...reading, ...DRY_RUNS]) await run(world, name, recipe)
    } finally {
      letGo()
      await holding
      await setReadOnly(world, false)
    }
  })

  it('that write keep no one else from writing for long', async () => {
    assert.equal(await slowLocks(world), [])
  })

  it('of "ledger verify" are none at all: it could not write if it wanted to', () =>
    mustOnlyRead(world.books.market.bed.testDatabase, async (url) => {
      const { code, stderr } = await world.books.affiliate(['ledger', 'verify'], { DATABASE_URL: url })
      assert.is(code, 0, stderr)
    }))

  it.run()
}

/** What is connected from now on may not write, whatever it asks for itself; on SQLite the held lock says as much. */
async function setReadOnly({ books }: World, on: boolean): Promise<void> {
  const { database } = books.market.bed.testDatabase
  if (database.dialect === 'sqlite') return
  const name = sql.id(new URL(database.url).pathname.slice(1))
  const change = on ? sql`set default_transaction_read_only = on` : sql`reset default_transaction_read_only`
  await sql`alter database ${name} ${change}`.execute(database.writer)
}

/**
 * A command usually holds a lock for 10 ms at most; one that holds it while it asks a person, a processor or another program never
 * ends here.
 */
const MOST_MS = 5000

/** Takes and gives back SQLite's write lock all the time. */
const ON_SQLITE = `
  const { default: Database } = await import('better-sqlite3')
  const db = new Database(process.argv[1], { timeout: 0 })
  let freeAt = performance.now()
  const look = () => {
    try { db.exec('begin immediate; rollback'); freeAt = performance.now() } catch (error) {
      if (error.code !== 'SQLITE_BUSY') throw error
      kept = Math.max(kept, performance.now() - freeAt)
    }
  }`

/** Asks for the age of each transaction that holds a row, or a table against writers. */
const ON_POSTGRESQL = `
  const { default: pg } = await import('pg')
  const client = new pg.Client(process.argv[1])
  await client.connect()
  const look = async () => {
    const { rows } = await client.query(\`
      select coalesce(max(extract(epoch from clock_timestamp() - xact_start) * 1000), 0)::float8 as age
      from pg_stat_activity as one
      where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and (
        backend_xid is not null or exists (
          select from pg_locks where pg_locks.pid = one.pid and granted and locktype = 'relation'
            and mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')))\`)
    kept = Math.max(kept, rows[0].age)
  }`

const LOOKING = `
  const { setTimeout: pause } = await import('node:timers/promises')
  let over = false
  process.stdin.on('data', () => { console.log(kept); kept = 0 })
  process.stdin.on('end', () => { over = true })
  console.log('ready')
  while (!over) {
    await look()
    await pause(1)
  }
  process.exit()`

/**
 * The commands that held a lock for too long, and for how long. A process of its own would write to the same database all the time, and
 * answers for how long another writer would have waited at most since it was asked last, ms.
 */
async function slowLocks(world: World): Promise<string[]> {
  const { database, url } = world.books.market.bed.testDatabase
  const [program, place] = database.dialect === 'sqlite' ? [ON_SQLITE, database.file] : [ON_POSTGRESQL, url]
  const code = `let kept = 0\n${program}\n${LOOKING}`
  const rival = spawn(process.execPath, ['--input-type=module', '-e', code, place], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(rival, 'exit')
  const lines = createInterface(rival.stdout)[Symbol.asyncIterator]()
  const worst = async () => {
    rival.stdin.write('?')
    return Number((await lines.next()).value)
  }
  await lines.next()
  try {
    const slow: string[] = []
    for (const [name, recipe] of Object.entries(COMMANDS)) {
      if (!WRITING.has(name)) continue
      // What is made ready for it may take what it likes.
      await run(world, name, recipe, worst)
      const kept = await worst()
      // Not a number if the process has ended.
      if (!(kept < MOST_MS)) slow.push(`${name}: ${kept.toFixed(0)} ms`)
    }
    return slow
  } finally {
    rival.stdin.end()
    await ended
  }
}
