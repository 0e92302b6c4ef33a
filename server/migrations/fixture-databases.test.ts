import { createHmac } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ORDER_SOURCES } from '../../shared/schemas/stores.ts'
import { checkAppKey } from '../platform/crypto/app-key-check.ts'
import { migrate, migrationState } from '../platform/database/migrator.ts'
import type { OpenDatabase } from '../platform/database/open-database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { orderSource, type SaleReceipt } from '../sales/accept-sale.rule.ts'
import { startService } from '../service.ts'
import { openTestDatabase, testDialects } from '../test/testkit/databases.ts'
import {
  type FixtureDatabase,
  fixtureCommits,
  openFixtureDatabase,
} from '../test/testkit/fixture-databases.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { schemaShape } from '../test/testkit/schema-shape.ts'
import { call } from '../test/testkit/service-bed.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { openDestination } from '../users/payout-destinations.service.ts'
import { INVARIANTS, verifyBooks } from '../verification/verify-books.ts'

/** What the fixture's script gave: see scripts/fixture-databases/. */
const IBANS = ['PK24SCBL0000001171495101', 'PK36SCBL0000001123456702', 'PK48MEZN0002010100987654']
const DOMAIN = 'kurta.myshopify.com'

/** How many rows each table has; partitions count with their table. */
async function rowCounts(database: OpenDatabase): Promise<Map<string, number>> {
  const tables =
    database.dialect === 'sqlite'
      ? sql<{
          name: string
        }>`select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'`
      : sql<{ name: string }>`select relname as name from pg_class
          where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`
  const counts = new Map<string, number>()
  for (const { name } of (await tables.execute(database.reader)).rows) {
    const { rows } = await sql<{ n: number }>`select count(*) as n from ${sql.table(name)}`.execute(
      database.reader,
    )
    counts.set(name, rows[0]?.n ?? 0)
  }
  return counts
}

/** What the migration to `store_days` counted: `<store> <source>` for each order. */
async function countedOrders({ reader }: OpenDatabase): Promise<string[]> {
  const days = await reader.selectFrom('store_days').selectAll().execute()
  const counts = days.flatMap((day) =>
    ORDER_SOURCES.flatMap((source) => Array<string>(day[source]).fill(`${day.store_id} ${source}`)),
  )
  return counts.sort()
}

/** The same from the receipts, for the last 35 days of each store. */
async function ordersOfSales({ reader }: OpenDatabase): Promise<string[]> {
  const sales = await reader
    .selectFrom('sales')
    .select(['store_id', 'receipt', 'created_at'])
    .orderBy('created_at', 'desc')
    .execute()
  const last = Map.groupBy(sales, (sale) => sale.store_id)
  return sales
    .filter((sale) => sale.created_at > (last.get(sale.store_id)?.[0]?.created_at ?? 0) - 35 * DAY)
    .map(({ store_id, receipt }) => ({ store_id, facts: (JSON.parse(receipt) as SaleReceipt).facts }))
    .filter(({ facts }) => !facts.order.test)
    .map(({ store_id, facts }) => `${store_id} ${orderSource(facts)}`)
    .sort()
}

async function breachesOf({ platform }: FixtureDatabase): Promise<string[]> {
  const results = await verifyBooks(platform)
  assert.is(results.length, INVARIANTS.length)
  return results.flatMap(({ name, breaches }) => breaches.map((breach) => `${name}: ${breach.detail}`))
}

/** Without parentheses, which PostgreSQL nests in another way once a check has been dumped and loaded. */
async function shapeOf(database: OpenDatabase): Promise<string[]> {
  return (await schemaShape(database)).map((line) => line.replace(/[()]/g, ''))
}

/** Triggers with their functions, which `schemaShape` leaves out. */
async function triggersOf({ dialect, reader }: OpenDatabase): Promise<string[]> {
  const triggers =
    dialect === 'sqlite'
      ? sql<{ line: string }>`select sql as line from sqlite_schema where type = 'trigger' order by sql`
      : sql<{
          line: string
        }>`select concat_ws(' ', pg_get_triggerdef(pg_trigger.oid), tgenabled, prosrc, proconfig::text) as line
          from pg_trigger join pg_proc on pg_proc.oid = tgfoid
          where not tgisinternal and tgparentid = 0 order by 1`
  const { rows } = await triggers.execute(reader as Kysely<Schema>)
  return rows.map(({ line }) => line)
}

/** An order that the store signs with the secret that the database holds encrypted. */
function deliverOrder(url: string) {
  const raw = orderBody({ createdAt: Date.now(), price: 100_000 })
  const headers = {
    'content-type': 'application/json',
    'x-shopify-topic': 'orders/paid',
    'x-shopify-shop-domain': DOMAIN,
    'x-shopify-webhook-id': 'a delivery after the upgrade',
    'x-shopify-hmac-sha256': createHmac('sha256', `secret of ${DOMAIN}`).update(raw).digest('base64'),
  }
  return call(url, 'POST', '/webhooks/store-sales', { raw, headers })
}

for (const dialect of testDialects()) {
  for (const commit of fixtureCommits()) {
    const it = suite<{ fixture: FixtureDatabase }>(`the database of ${commit} on ${dialect}`)

    it.before.each(async (world) => {
      world.fixture = await openFixtureDatabase(dialect, commit)
    })
    it.after.each(({ fixture }) => fixture.close())

    it('has rows in every table', async ({ fixture: { database } }) => {
      const counts = await rowCounts(database)
      assert.ok(counts.size > 30)
      assert.equal(
        [...counts].filter(([, count]) => count === 0).map(([table]) => table),
        [],
      )
    })

    it('migrates to the schema of a new database and loses no row', async ({ fixture }) => {
      const { database } = fixture
      const before = await rowCounts(database)
      await migrate(database)
      assert.equal((await migrationState(database)).pending, [])
      const after = await rowCounts(database)
      for (const [table, count] of before) {
        if (table !== 'mikro_orm_migrations') assert.is(after.get(table), count, table)
      }
      assert.equal(await breachesOf(fixture), [])
      assert.equal(await countedOrders(database), await ordersOfSales(database))
      const fresh = await openTestDatabase(dialect)
      try {
        assert.equal(await shapeOf(database), await shapeOf(fresh.database))
        const triggers = await triggersOf(database)
        assert.ok(triggers.length > 20)
        assert.equal(triggers, await triggersOf(fresh.database))
      } finally {
        await fresh.close()
      }
    })

    it('opens its bank accounts with its key after the migration', async ({
      fixture: { database, platform },
    }) => {
      await migrate(database)
      await checkAppKey(database, platform.vault)
      const destinations = await database.reader
        .selectFrom('payout_destinations')
        .select(['id', 'user_id'])
        .execute()
      // A day after the last was given, when every one has come into effect.
      const aDayLater = platform.clock.now() + DAY
      const ibans = await Promise.all(
        destinations.map(
          async ({ id, user_id }) => (await openDestination(platform, user_id, id, aDayLater))?.iban,
        ),
      )
      assert.equal(ibans.sort(), IBANS)
    })

    it('serves: accounts log in, stores report orders, and the books still balance', async ({ fixture }) => {
      const service = await startService({
        environment: {
          PORT: '0',
          DATABASE_URL: fixture.url,
          DATA_DIR: fixture.folder,
          APP_KEY: fixture.appKey,
          LOG_LEVEL: 'silent',
        },
      })
      try {
        const url = service.url ?? ''
        const ready = await call(url, 'GET', '/readyz')
        assert.is(ready.status, 200, JSON.stringify(ready.body))
        const body = { email: 'kurta@fixture.example', password: fixture.password }
        const login = await call(url, 'POST', '/auth/login', { body })
        assert.is(login.status, 200, JSON.stringify(login.body))
        const sales = await call(url, 'GET', '/sales?limit=100', { token: login.body.token })
        assert.ok(sales.body.items.length >= 16)
        assert.is((await deliverOrder(url)).status, 200)
      } finally {
        await service.stop()
      }
      assert.equal(await breachesOf(fixture), [])
    })

    it.run()
  }
}
