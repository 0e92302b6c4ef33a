// database: none

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertMapped } from '../../test/testkit/pluck.ts'
import { fc } from '../../test/testkit/property.ts'
import { systemIds } from '../ids.ts'
import { ABOVE_ALL_IDS, idAfter, inPeriod, pageItems } from './keyset-scan.ts'

test('the next id is just above its own', () => {
  assert.is(idAfter('019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'), '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4f')
  assert.is(idAfter('019c3f5e-8a40-7cc2-9d6e-ffffffffffff'), '019c3f5e-8a40-7cc2-9d6f-000000000000')
  assert.is(idAfter('00000000-0000-0000-0000-000000000009'), '00000000-0000-0000-0000-00000000000a')
  const id = systemIds.next()
  assert.ok(id < idAfter(id) && idAfter(id) < ABOVE_ALL_IDS)
})

test('nothing fits between an id and the next', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.uuid(), (id, other) => {
      assert.is(other < idAfter(id), other <= id)
    }),
    { numRuns: 500 },
  )
})

test('a period has its beginning and not its end, and a step goes on after what it leaves out', () => {
  const step = { below: ABOVE_ALL_IDS, size: 3, from: 10, to: 20 }
  assertMapped([9, 10, 19, 20, null], (moment) => inPeriod(step, moment), [false, true, true, false, false])
  const moments = { c: 20, b: 10, a: null }
  const rows = Object.entries(moments).map(([id, created_at]) => ({ id, created_at }))
  const pageOf = (found: typeof rows) => pageItems(step, found, ({ id }) => id)
  assert.equal(pageOf(rows), { items: ['b'], last: 'a' })
  assert.equal(pageOf([]), { items: [], last: null })
})

test.run()
