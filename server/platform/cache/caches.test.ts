// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { onMovingClock } from '../../test/testkit/moving-clock.ts'
import { messageOf } from '../../test/testkit/rejection.ts'
import { Caches } from './caches.ts'

/** A source whose loads are counted. */
function source(value: unknown) {
  let loads = 0
  const load = async () => {
    loads += 1
    return value
  }
  return { load, loads: () => loads }
}

test('a value is loaded once and cached, also a missing one', async () => {
  const caches = new Caches()
  for (const value of [{ id: 1 }, null, undefined, 0]) {
    const { load, loads } = source(value)
    const key = String(value)
    assert.is(await caches.get('slugs', key, load), value)
    assert.is(await caches.get('slugs', key, load), value)
    assert.is(loads(), 1)
  }
})

test('caches do not share keys, and dropping one key or clearing one cache leaves the rest', async () => {
  const caches = new Caches()
  const offers = source('offer')
  const slugs = source('slug')
  const others = source('other')
  const readAll = async () => {
    assert.is(await caches.get('offers', 'a', offers.load), 'offer')
    assert.is(await caches.get('slugs', 'a', slugs.load), 'slug')
    assert.is(await caches.get('slugs', 'b', others.load), 'other')
    return [offers.loads(), slugs.loads(), others.loads()]
  }
  assert.equal(await readAll(), [1, 1, 1])
  caches.drop('slugs', 'a')
  assert.equal(await readAll(), [1, 2, 1])
  caches.drop('slugs')
  assert.equal(await readAll(), [1, 3, 2])
  caches.drop()
  assert.equal(await readAll(), [2, 4, 3])
})

test('a value that was loading during an invalidation is returned, but not cached', async () => {
  const caches = new Caches()
  for (const drop of [
    () => caches.drop('slugs', 'a'),
    () => caches.drop('slugs'),
    () => caches.invalidate('slugs', 'a'),
    () => caches.invalidate(null, null),
  ]) {
    const { promise, resolve } = Promise.withResolvers<string>()
    const stale = caches.get('slugs', 'a', () => promise)
    drop()
    resolve('stale')
    assert.is(await stale, 'stale')
    assert.is(await caches.get('slugs', 'a', async () => 'fresh'), 'fresh')
    caches.drop('slugs')
  }
})

test("the lifetime of a value starts with its load: another process's change shows two seconds later at the latest", () =>
  onMovingClock(async (pass) => {
    const caches = new Caches()
    const load = async () => {
      pass(1000)
      return 'before'
    }
    await caches.get('slugs', 'a', load)
    pass(1000)
    assert.is(await caches.get('slugs', 'a', async () => 'after'), 'after')
  }))

test('a failed load reaches its caller and is not cached', async () => {
  const caches = new Caches()
  assert.is(await messageOf(caches.get('slugs', 'a', () => Promise.reject(new Error('down')))), 'down')
  assert.is(await caches.get('slugs', 'a', async () => 'up'), 'up')
})

test('the number of entries is bounded', async () => {
  const caches = new Caches()
  const first = source('first')
  await caches.get('slugs', 'first', first.load)
  for (let index = 0; index < 50_000; index += 1) await caches.get('slugs', `${index}`, async () => index)
  await caches.get('slugs', 'first', first.load)
  assert.is(first.loads(), 2)
})

test.run()
