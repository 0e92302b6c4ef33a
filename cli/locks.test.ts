// time limit: 400 s
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../server/proof/testbed/databases.ts'
import { mustOnlyRead } from '../server/proof/testbed/reading-only.ts'
import { type Books, openBooks } from './testing/books.ts'

/** Commands that only look; those about one row of it are given one. */
const READING: string[][] = [
  ['db', 'status'],
  ['users', 'list'],
  ['users', 'suspend', 'CREATOR', '--dry-run'],
  ['stores', 'list'],
  ['offers', 'list'],
  ['flagged', 'list'],
  ['sales', 'list'],
  ['sales', 'explain', '6100000001009'],
  ['webhooks', 'events'],
  ['webhooks', 'show', 'EVENT'],
  ['webhooks', 'reprocess', '--dry-run'],
  ['billing', 'cycles'],
  ['billing', 'close', '--as-of', '2099-01-01', '--dry-run'],
  ['payouts', 'list'],
  ['payouts', 'run', '--dry-run'],
  ['ledger', 'balances'],
  ['ledger', 'verify'],
  ['ledger', 'statement', 'CREATOR'],
  ['jobs', 'list'],
  ['status'],
]

for (const dialect of testDialects()) {
  const it = suite(`reading commands on ${dialect}`)
  let books: Books
  it.before(async () => {
    books = await openBooks(dialect, { here: true })
  })
  it.after(() => books.market.close())

  it('take no lock that a writer holds or waits for', async () => {
    const { database } = books.market.platform
    const event = await database.reader
      .selectFrom('inbound_events')
      .select('id')
      .limit(1)
      .executeTakeFirstOrThrow()
    const { promise: let_go, resolve: letGo } = Promise.withResolvers<void>()
    const { promise: held, resolve: hold } = Promise.withResolvers<void>()
    const holding = database.transaction(async (tx) => {
      if (dialect === 'postgresql') {
        const { rows } = await sql<{ name: string }>`
          select tablename as name from pg_tables where schemaname = 'public'`.execute(tx)
        // What stands against every write, and against no read.
        for (const { name } of rows) await sql`lock table ${sql.table(name)} in exclusive mode`.execute(tx)
      }
      hold()
      await let_go
    })
    await held
    try {
      for (const args of READING) {
        const words = args.map((word) => ({ CREATOR: books.creatorId, EVENT: event.id })[word] ?? word)
        const { code, stderr } = await books.affiliate([...words, '--json'])
        assert.is(code, 0, `${args.join(' ')}: ${stderr}`)
      }
    } finally {
      letGo()
      await holding
    }
  })

  it('leave the books as they are: "ledger verify" could not write if it wanted to', () =>
    mustOnlyRead(books.market.bed.testDatabase, async (url) => {
      const { code, stderr } = await books.affiliate(['ledger', 'verify'], { DATABASE_URL: url })
      assert.is(code, 0, stderr)
    }))

  it.run()
}

const writing = suite('writing commands')
let books: Books
writing.before(async () => {
  books = await openBooks('sqlite')
})
writing.after(() => books.market.close())

/** Takes and gives back the write lock all the time, and prints how long it was kept from it, and how late it woke, ms. */
const RIVAL = `
  const { default: Database } = await import('better-sqlite3')
  const db = new Database(process.argv[1], { timeout: 0 })
  const cell = new Int32Array(new SharedArrayBuffer(4))
  let kept = 0, late = 0, over = false
  process.stdin.on('end', () => { over = true }).resume()
  let freeAt = performance.now()
  console.log('ready')
  while (!over) {
    try { db.exec('begin immediate; rollback'); freeAt = performance.now() } catch (error) {
      if (error.code !== 'SQLITE_BUSY') throw error
      kept = Math.max(kept, performance.now() - freeAt)
    }
    const slept = performance.now()
    Atomics.wait(cell, 0, 0, 1)
    late = Math.max(late, performance.now() - slept)
    await new Promise(setImmediate)
  }
  console.log(JSON.stringify({ kept, late }))`

async function longestLock(work: () => Promise<void>): Promise<{ kept: number; late: number }> {
  const { database } = books.market.bed.testDatabase
  if (database.dialect !== 'sqlite') throw new Error('only SQLite has one writer')
  const rival = spawn(process.execPath, ['--input-type=module', '-e', RIVAL, database.file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(rival.stdout, 'readable')
  const output = text(rival.stdout)
  await work()
  rival.stdin.end()
  return JSON.parse((await output).trim().split('\n').at(-1) ?? '{}')
}

const MOST_MS = 100
const ROUNDS = 4

writing('keep nobody else from writing for more than 100 ms', async () => {
  const { items } = await books.json('flagged', 'list')
  const [event] = (await books.json('webhooks', 'events', '--state', 'set_aside')).items
  const rounds: string[] = []
  for (let round = 1; round <= ROUNDS; round += 1) {
    const { kept, late } = await longestLock(async () => {
      const credit = [
        books.shop.merchantId,
        '10',
        '--reference',
        `CR-${round}`,
        '--reason',
        'returned',
        '--yes',
      ]
      await books.json('users', 'suspend', books.creatorId)
      await books.json('users', 'reinstate', books.creatorId)
      await books.json('billing', 'credit', ...credit)
      await books.json('flagged', 'resolve', items[0].id, '--note', 'looked at')
      await books.json('webhooks', 'retry', event.id)
      await books.json('billing', 'close', '--as-of', '2099-01-01')
      await books.json('payouts', 'run')
      await books.json('ledger', 'seal')
    })
    rounds.push(`${kept.toFixed(0)} ms (woken up to ${late.toFixed(0)} ms late)`)
    // On a busy machine the rival is woken late, and the holder may be put to sleep: both count for nothing.
    if (kept - late < MOST_MS) return
  }
  assert.unreachable(`kept from writing for ${rounds.join(', ')}`)
})

writing.run()
