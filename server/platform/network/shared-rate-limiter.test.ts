import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase } from '../../test/testkit/databases.ts'
import { openDatabase } from '../database/open-database.ts'
import { RateLimiter } from './rate-limiter.ts'

test('limiters of several processes count together on PostgreSQL', async () => {
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

test.run()
