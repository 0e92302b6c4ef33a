import { mock } from 'node:test'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres, openTestDatabase } from '../../test/testkit/databases.ts'
import { openDatabase } from '../database/open-database.ts'
import { RateLimiter } from './rate-limiter.ts'

const it = suite('rate limiter')
it.before.each(() =>
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.parse('2026-11-01T07:00:00Z') }),
)
it.after.each(() => mock.timers.reset())

it('counts from the first point of a window to its end', async () => {
  const limiter = new RateLimiter({ points: 2, seconds: 60 })
  assert.equal(await limiter.consume('a'), { limit: 2, remaining: 1, resetsIn: 60, exceeded: false })
  mock.timers.tick(20_500)
  assert.equal(await limiter.consume('a'), { limit: 2, remaining: 0, resetsIn: 40, exceeded: false })
  assert.equal(await limiter.consume('a'), { limit: 2, remaining: 0, resetsIn: 40, exceeded: true })
  assert.is((await limiter.consume('b'))?.exceeded, false, 'each key by itself')
  mock.timers.tick(39_500)
  assert.equal(await limiter.consume('a'), { limit: 2, remaining: 1, resetsIn: 60, exceeded: false })
})

it('takes several points at a time, gives back and forgets', async () => {
  const limiter = new RateLimiter({ points: 5, seconds: 60 })
  assert.is((await limiter.consume('a', 6))?.exceeded, true)
  await limiter.reward('a', 3)
  assert.is((await limiter.consume('a', 2))?.exceeded, false)
  assert.is((await limiter.consume('a'))?.exceeded, true)
  await limiter.reset('a')
  assert.is((await limiter.consume('a'))?.remaining, 4)
})

it('says where a key stands without counting', async () => {
  const limiter = new RateLimiter({ points: 1, seconds: 60 })
  assert.is(await limiter.peek('a'), null)
  await limiter.consume('a')
  mock.timers.tick(10_000)
  assert.equal(await limiter.peek('a'), { limit: 1, remaining: 0, resetsIn: 50, exceeded: true })
  mock.timers.tick(50_000)
  assert.is(await limiter.peek('a'), null)
})

it('counts calls at the same moment one by one', async () => {
  const limiter = new RateLimiter({ points: 7, seconds: 60 })
  const standings = await Promise.all(Array.from({ length: 20 }, () => limiter.consume('a')))
  assert.is(standings.filter((standing) => !standing?.exceeded).length, 7)
})

it('has no limit with 0 points', async () => {
  const limiter = new RateLimiter({ points: 0, seconds: 60 })
  for (let index = 0; index < 10; index += 1) assert.is(await limiter.consume('a'), null)
  await limiter.reward('a')
})

it('keeps a bounded number of keys, the latest used', async () => {
  const limiter = new RateLimiter({ points: 10, seconds: 60 }, { maxKeys: 100 })
  await limiter.consume('forgotten')
  await limiter.consume('kept')
  for (let index = 0; index < 99; index += 1) {
    await limiter.consume(`key ${index}`)
    if (index === 50) assert.is((await limiter.consume('kept'))?.remaining, 8)
  }
  assert.is((await limiter.consume('kept'))?.remaining, 7)
  assert.is((await limiter.consume('forgotten'))?.remaining, 9)
})

it.run()

const shared = suite('rate limiters of several processes')
shared('count together on PostgreSQL', async () => {
  const { database, url, close } = await openTestDatabase('postgresql')
  const other = await openDatabase(url, { create: false })
  const limit = { points: 3, seconds: 60 }
  const [one, two] = [database, other].map(
    (shared) => new RateLimiter(limit, { shared: { name: 'auth', database: shared } }),
  ) as [RateLimiter, RateLimiter]
  assert.is((await one.consume('a@example.pk'))?.remaining, 2)
  assert.is((await two.consume('a@example.pk'))?.remaining, 1)
  assert.is((await one.consume('a@example.pk'))?.exceeded, false)
  const refused = await two.consume('a@example.pk')
  assert.equal([refused?.exceeded, refused?.remaining], [true, 0])
  assert.ok((refused?.resetsIn ?? 0) > 50)
  assert.is((await one.peek('a@example.pk'))?.exceeded, true)
  assert.is((await two.consume('b@example.pk'))?.remaining, 2)
  await two.reward('b@example.pk')
  assert.is((await one.consume('b@example.pk', 2))?.remaining, 1)
  const named = new RateLimiter(limit, { shared: { name: 'pairs', database } })
  assert.is(await named.peek('a@example.pk'), null)
  await one.reset('a@example.pk')
  assert.is(await two.peek('a@example.pk'), null)
  const rows = await database.reader.selectFrom('rate_limits').selectAll().execute()
  assert.not.match(JSON.stringify(rows), 'example')
  await other.close()
  await close()
})
onPostgres(shared).run()
