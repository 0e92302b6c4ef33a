// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createAppKeys } from '../crypto/key-ring.ts'
import { digestOf, stateOf } from './protected-rows.ts'

const FIRST = Buffer.alloc(32, 1)
const SECOND = Buffer.alloc(32, 2)
const ROW = { id: 'u1', role: 'creator', suspended_at: null }

test('a digest holds for the same table and values only', () => {
  const keys = createAppKeys(FIRST)
  const row_digest = digestOf(keys, 'users', ROW)
  assert.is(stateOf(keys, 'users', { ...ROW, row_digest }), 'holds')
  assert.is(stateOf(keys, 'users', { ...ROW, row_digest, added_later: null }), 'holds', 'a new column')
  assert.is(stateOf(keys, 'users', { ...ROW, row_digest, role: 'admin' }), 'changed')
  assert.is(stateOf(keys, 'applications', { ...ROW, row_digest }), 'changed')
  assert.is(stateOf(keys, 'users', { ...ROW, row_digest, suspended_at: '' }), 'changed')
  for (const bad of [null, '', 'x', '.', `${row_digest}0`, row_digest.slice(0, -2)])
    assert.is(stateOf(keys, 'users', { ...ROW, row_digest: bad }), 'changed', String(bad))
})

test('a former key of the ring still checks; another key is named unknown', () => {
  const row = { ...ROW, row_digest: digestOf(createAppKeys(FIRST), 'users', ROW) }
  assert.is(stateOf(createAppKeys(SECOND, [FIRST]), 'users', row), 'holds')
  assert.is(stateOf(createAppKeys(SECOND), 'users', row), 'unknown_key')
})

test.run()
