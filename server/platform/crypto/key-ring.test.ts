// database: none

import { createHmac } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pluck } from '../../test/testkit/pluck.ts'
import { allKeys, createAppKey, createAppKeys } from './key-ring.ts'

const ONE = Buffer.alloc(32, 1)
const TWO = Buffer.alloc(32, 2)

/** RFC 5869 for one block of output: extract with an empty salt, then expand. */
function hkdf(key: Buffer, info: string, length: number): Buffer {
  const extracted = createHmac('sha256', Buffer.alloc(32)).update(key).digest()
  return createHmac('sha256', extracted).update(`${info}\x01`).digest().subarray(0, length)
}

test('a key derives one key per purpose, as RFC 5869 says', () => {
  const key = createAppKey(ONE)
  assert.equal(key.derive('affiliate encrypt'), hkdf(ONE, 'affiliate encrypt', 32))
  assert.not.equal(key.derive('affiliate encrypt'), key.derive('affiliate fingerprint'))
  assert.not.equal(key.derive('affiliate encrypt'), createAppKey(TWO).derive('affiliate encrypt'))
})

test('an id names a key in 8 hex characters', () => {
  assert.is(createAppKey(ONE).id, hkdf(ONE, 'affiliate key id', 4).toString('hex'))
  assert.match(createAppKey(ONE).id, /^[0-9a-f]{8}$/)
  assert.is.not(createAppKey(ONE).id, createAppKey(TWO).id)
})

test('a ring lists the current key first', () => {
  const keys = createAppKeys(ONE, [TWO])
  assert.equal(pluck(allKeys(keys), 'id'), [createAppKey(ONE).id, createAppKey(TWO).id])
  assert.equal(createAppKeys(ONE).former, [])
})

test.run()
