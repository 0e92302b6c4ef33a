// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { messageOf, rejectionOf } from '../test/testkit/rejection.ts'
import { Refusal } from './api/refusal.ts'
import { withTimeout } from './with-timeout.ts'

test('gives what the read gives, or its error', async () => {
  assert.is(await withTimeout(Promise.resolve(5)), 5)
  assert.is(await messageOf(withTimeout(Promise.reject(new Error('no such table')))), 'no such table')
})

test('does not wait longer than its timeout, and takes no harm from a late failure', async () => {
  const { promise, reject } = Promise.withResolvers<never>()
  const refusal = await rejectionOf(withTimeout(promise, 10))
  assert.instance(refusal, Refusal)
  assert.is((refusal as Refusal).code, 'unavailable')
  assert.is((refusal as Refusal).retryAfter, 1)
  reject(new Error('too late'))
  await new Promise((resolve) => setImmediate(resolve))
})

test.run()
