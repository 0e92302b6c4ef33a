// time limit: 180 s
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../../test/testkit/databases.ts'
import { raceProcesses } from '../../test/testkit/racing-processes.ts'
import type { OpenDatabase } from '../database/open-database.ts'
import { createLog } from '../log.ts'
import { type Hearing, hearOthers, tellOthers } from './cache-news.ts'
import { Caches } from './caches.ts'

interface Context {
  testDatabase: TestDatabase
  caches: Caches
  hearing: Hearing
  /** Resolves with what is dropped next on somebody else's word. */
  nextForgotten(): Promise<unknown[]>
}

/** Caches that tell a test what they forget. */
class WatchedCaches extends Caches {
  waiting: ((told: unknown[]) => void) | null = null

  override forget(name: string | null, key: string | null): void {
    super.forget(name, key)
    this.waiting?.([name, key])
  }
}

const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)

/** Drops in another process, as that one would after a commit. */
function dropElsewhere(url: string, statement: string): Promise<unknown> {
  return raceProcesses(1, {
    prepare: `
      const { openDatabase } = await import(${module('../database/open-database.ts')})
      const { tellOthers } = await import(${module('./cache-news.ts')})
      const { Caches } = await import(${module('./caches.ts')})
      const database = await openDatabase(${JSON.stringify(url)}, { create: false })
      const caches = new Caches()
      tellOthers(caches, database)`,
    run: `
      ${statement}
      await database.close()`,
  })
}

const it = suite<Context>("news of other processes' changes")
it.before.each(async (context) => {
  const testDatabase = await openTestDatabase('postgresql', { migrated: false })
  // So long that nothing is dropped for its age.
  const caches = new WatchedCaches({ lifetimeMs: 3_600_000 })
  const hearing = hearOthers({ caches, log: createLog('silent') }, testDatabase.database)
  await hearing.ready
  const nextForgotten = () =>
    new Promise<unknown[]>((resolve) => {
      caches.waiting = resolve
    })
  Object.assign(context, { testDatabase, caches, hearing, nextForgotten })
})
it.after.each(async ({ testDatabase, hearing }) => {
  await hearing.stop()
  await testDatabase.close()
})

it('drops what another process drops, and nothing else', async (context) => {
  const { caches, testDatabase, nextForgotten } = context
  for (const key of ['a', 'b']) await caches.get('slug', key, async () => 'before')
  const forgotten = nextForgotten()
  await dropElsewhere(testDatabase.url, `caches.drop('slug', 'a')`)
  assert.equal(await forgotten, ['slug', 'a'])
  assert.is(await caches.get('slug', 'a', async () => 'after'), 'after')
  assert.is(await caches.get('slug', 'b', async () => 'after'), 'before')
  const cleared = nextForgotten()
  await dropElsewhere(testDatabase.url, `caches.clear('slug')`)
  assert.equal(await cleared, ['slug', null])
  assert.is(await caches.get('slug', 'b', async () => 'after'), 'after')
})

it('listens anew after its connection is lost, and forgets everything then', async (context) => {
  const { caches, testDatabase, nextForgotten } = context
  await caches.get('slug', 'a', async () => 'before')
  const forgotten = nextForgotten()
  await terminateListeners(testDatabase.database)
  assert.equal(await forgotten, [null, null])
  assert.is(await caches.get('slug', 'a', async () => 'after'), 'after')
})

it('passes over what is no news', async ({ testDatabase, nextForgotten }) => {
  const forgotten = nextForgotten()
  const say = (text: string) => notify(testDatabase.database, text)
  for (const text of ['', 'x', '[]', '[1, 2, 3]', '{"name": "slug"}']) await say(text)
  await say(JSON.stringify(['another process', 'slug', 'last']))
  assert.equal(await forgotten, ['slug', 'last'])
})

it('does without on SQLite', async () => {
  const { database, close } = await openTestDatabase('sqlite', { migrated: false })
  const caches = new Caches()
  tellOthers(caches, database)
  const hearing = hearOthers({ caches, log: createLog('silent') }, database)
  await hearing.ready
  caches.clear('slug')
  await hearing.stop()
  await close()
})

async function notify(database: OpenDatabase, text: string): Promise<void> {
  if (database.dialect === 'postgresql') {
    await database.pool.query(`select pg_notify('affiliate_caches', $1)`, [text])
  }
}

async function terminateListeners(database: OpenDatabase): Promise<void> {
  if (database.dialect !== 'postgresql') return
  await database.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and query like 'listen %'`)
}

if (testDialects().includes('postgresql')) it.run()
else {
  const without = suite("news of other processes' changes")
  without.skip('there is no PostgreSQL in this run', () => {})
  without.run()
}
