// long
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres, openTestDatabase, type TestDatabase } from '../../test/testkit/databases.ts'
import { raceProcesses } from '../../test/testkit/racing-processes.ts'
import { createLog } from '../log.ts'
import { Topics } from '../topics.ts'
import { Caches } from './caches.ts'
import { type Subscription, subscribeSignals } from './signals.ts'

interface Context {
  testDatabase: TestDatabase
  caches: Caches
  subscription: Subscription
  /** Resolves with the next invalidation that is received. */
  nextInvalidation(): Promise<unknown[]>
}

/** Reports its invalidations. */
class WatchedCaches extends Caches {
  onNext: ((invalidation: unknown[]) => void) | null = null

  override invalidate(name: string | null, key: string | null): void {
    super.invalidate(name, key)
    this.onNext?.([name, key])
  }
}

const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)

/** Runs a statement in another process. */
function runElsewhere(url: string, statement: string): Promise<unknown> {
  return raceProcesses(1, {
    prepare: `
      const { openDatabase } = await import(${module('../database/open-database.ts')})
      const { publishSignals } = await import(${module('./signals.ts')})
      const { Caches } = await import(${module('./caches.ts')})
      const { Topics } = await import(${module('../topics.ts')})
      const database = await openDatabase(${JSON.stringify(url)}, { create: false })
      const caches = new Caches()
      publishSignals({ caches, topics: new Topics() }, database)`,
    run: `
      ${statement}
      await database.close()`,
  })
}

const it = suite<Context>('invalidations of other processes')
it.before.each(async (context) => {
  const testDatabase = await openTestDatabase('postgresql', { migrated: false })
  // No value expires.
  const caches = new WatchedCaches({ lifetimeMs: 3_600_000 })
  const parts = { caches, log: createLog('silent'), topics: new Topics() }
  const subscription = subscribeSignals(parts, testDatabase.database)
  await subscription.ready
  const nextInvalidation = () =>
    new Promise<unknown[]>((resolve) => {
      caches.onNext = resolve
    })
  Object.assign(context, { testDatabase, caches, subscription, nextInvalidation })
})
it.after.each(async ({ testDatabase, subscription }) => {
  await subscription.stop()
  await testDatabase.close()
})

it('drop what another process drops, and nothing else', async (context) => {
  const { caches, testDatabase, nextInvalidation } = context
  for (const key of ['a', 'b']) await caches.get('slug', key, async () => 'before')
  const received = nextInvalidation()
  await runElsewhere(testDatabase.url, `caches.drop('slug', 'a')`)
  assert.equal(await received, ['slug', 'a'])
  assert.is(await caches.get('slug', 'a', async () => 'after'), 'after')
  assert.is(await caches.get('slug', 'b', async () => 'after'), 'before')
  const cleared = nextInvalidation()
  await runElsewhere(testDatabase.url, `caches.drop('slug')`)
  assert.equal(await cleared, ['slug', null])
  assert.is(await caches.get('slug', 'b', async () => 'after'), 'after')
  const all = nextInvalidation()
  await runElsewhere(testDatabase.url, 'caches.drop()')
  assert.equal(await all, [null, null])
})

it('reconnect after the connection is lost, and then drop everything', async (context) => {
  const { caches, testDatabase, nextInvalidation } = context
  await caches.get('slug', 'a', async () => 'before')
  const received = nextInvalidation()
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and query like 'listen %'`.execute(testDatabase.database.writer)
  assert.equal(await received, [null, null])
  assert.is(await caches.get('slug', 'a', async () => 'after'), 'after')
})

it('ignore malformed messages', async ({ testDatabase, nextInvalidation }) => {
  const received = nextInvalidation()
  const last = JSON.stringify(['another process', 'slug', 'last'])
  for (const text of ['', 'x', '[]', '[1, 2, 3]', '{"name": "slug"}', last])
    await sql`select pg_notify('affiliate_signals', ${text})`.execute(testDatabase.database.writer)
  assert.equal(await received, ['slug', 'last'])
})

onPostgres(it).run()
