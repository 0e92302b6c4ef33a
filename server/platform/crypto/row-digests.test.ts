import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createAppKeys } from './key-ring.ts'
import { rowDigests } from './row-digests.ts'

const FIRST = Buffer.alloc(32, 1)
const SECOND = Buffer.alloc(32, 2)

test('a digest holds for the same table and values only', () => {
  const digests = rowDigests(createAppKeys(FIRST))
  const stored = digests.digest('users', ['u1', 'creator', null])
  assert.is(digests.check(stored, 'users', ['u1', 'creator', null]), 'holds')
  assert.is(digests.check(stored, 'users', ['u1', 'admin', null]), 'changed')
  assert.is(digests.check(stored, 'sessions', ['u1', 'creator', null]), 'changed')
  assert.is(digests.check(stored, 'users', ['u1', 'creator', '']), 'changed')
  for (const bad of [null, '', 'x', '.', `${stored}0`, stored.slice(0, -2)])
    assert.is(digests.check(bad, 'users', ['u1', 'creator', null]), 'changed', String(bad))
})

test('a former key of the ring still checks; another key is named unknown', () => {
  const stored = rowDigests(createAppKeys(FIRST)).digest('users', ['u1'])
  assert.is(rowDigests(createAppKeys(SECOND, [FIRST])).check(stored, 'users', ['u1']), 'holds')
  assert.is(rowDigests(createAppKeys(SECOND)).check(stored, 'users', ['u1']), 'unknown_key')
})

test.run()
