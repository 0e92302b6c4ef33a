// proof only
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { queuedMail } from '../../server/test/testkit/people.ts'
import { mustOnlyRead } from '../../server/test/testkit/reading-only.ts'
import { EXAMPLE_ID } from '../command.ts'
import { openBooks } from './books.ts'
import {
  freshEndpoint,
  OPERATOR_WORK,
  type Recipe,
  runOperatorWork,
  type World,
  way,
} from './operator-work.ts'
import { openProcessorStub } from './processor-stub.ts'

/** In place of what other tests call, which write something first or find a fault. */
const OWN: Record<string, Recipe> = {
  'mail show': (books) => idIn(books, 'mails'),
  'endpoints show': (books) => idIn(books, 'webhook_endpoints'),
  // No payout has been made.
  'payouts show': way(EXAMPLE_ID),
  doctor: way(),
  'webhooks replay': (books) => [
    ...['draft-order', '--store', books.shop.storeId, '--url', 'http://127.0.0.1:9'],
  ],
}

/** These find fault with what a test offers them, and say so by the exit code. */
const MAY_FAIL = new Set(['doctor', 'payouts show', 'webhooks replay', 'db backup'])

const isReading = ([name, recipe]: [string, Recipe]) =>
  name !== 'ledger seal' && (typeof recipe === 'string' || recipe.action === undefined)

/** Writing commands with options that only read. */
const DRY_RUNS: [string, Recipe][] = [
  ['users suspend', (books) => [books.creatorId, '--dry-run']],
  ['billing close', way('--as-of', '2099-01-01', '--dry-run')],
  ['payouts run', way('--dry-run')],
  ['keys rotate', way('--dry-run')],
]

async function idIn({ market }: World['books'], table: 'mails' | 'webhook_endpoints') {
  const { reader } = market.platform.database
  const { id } = await reader.selectFrom(table).select('id').limit(1).executeTakeFirstOrThrow()
  return [id]
}

async function run(world: World, name: string, recipe: Recipe) {
  if (typeof recipe === 'string') return
  const { code, stderr } = await runOperatorWork(world, name, await recipe(world.books))
  assert.ok(code === 0 || (code === 1 && MAY_FAIL.has(name)), `${name}: exit ${code}: ${stderr}`)
}

for (const dialect of testDialects()) {
  const it = suite(`locks of commands on ${dialect}`)
  let world: World
  it.before(async () => {
    const books = await openBooks(dialect)
    await queuedMail(books.market.platform, books.creatorId)
    await freshEndpoint(books)
    world = { books, stub: await openProcessorStub() }
  })
  it.after(async () => {
    await world.stub.close()
    await world.books.market.close()
  })

  it('that only look are none that a writer holds or waits for', async () => {
    const { database } = world.books.market.platform
    const [released, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const holding = database.transaction(async (tx) => {
      if (dialect === 'postgresql') {
        const { rows } = await sql<{ name: string }>`
          select tablename as name from pg_tables where schemaname = 'public'`.execute(tx)
        // What stands against every write and every row that is locked, and against no read.
        for (const { name } of rows) await sql`lock table ${sql.table(name)} in exclusive mode`.execute(tx)
      }
      held.resolve()
      await released.promise
    })
    await held.promise
    try {
      await setReadOnly(world, true)
      const reading = Object.entries({ ...OPERATOR_WORK, ...OWN }).filter(isReading)
      for (const [name, recipe] of [...reading, ...DRY_RUNS]) await run(world, name, recipe)
    } finally {
      released.resolve()
      await holding
      await setReadOnly(world, false)
    }
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
