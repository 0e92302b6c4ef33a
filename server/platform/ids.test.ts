// database: none

import { v7, validate, version } from 'uuid'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { firstIdAt, isId, NIL_ID, systemIds } from './ids.ts'

test('ids of one process sort in the order in which they were made', () => {
  const ids = Array.from({ length: 5000 }, () => systemIds.next())
  assert.equal([...ids].sort(), ids)
  assert.is(new Set(ids).size, ids.length)
  assert.ok(ids.every(isId))
})

test('ids are UUIDs of version 7, made now, with a random end', () => {
  const before = Date.now()
  const ids = Array.from({ length: 5000 }, () => systemIds.next())
  // A moment may run ahead by one where the count of one millisecond is full.
  const moments = ids.map((id) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))
  assert.ok(moments.every((moment) => moment >= before - 1 && moment <= Date.now() + 1))
  assert.ok(ids.every((id) => validate(id) && version(id) === 7))
  // In 5000 ids each of sixteen digits stands in each place of the end.
  const ends = ids.map((id) => id.slice(-10))
  for (let place = 0; place < 10; place += 1) {
    assert.is(new Set(ends.map((end) => end[place])).size, 16, `place ${place}`)
  }
})

test('firstIdAt is a bound: no id of that moment is smaller, every id of an earlier one is', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: Date.parse('9999-12-31T23:59:59.999Z') }),
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
      fc.integer({ min: 0, max: 0xffffffff }),
      (moment, random, seq) => {
        const bound = firstIdAt(moment)
        assert.ok(isId(bound))
        assert.ok(v7({ msecs: moment, random, seq }) >= bound)
        assert.ok(v7({ msecs: moment - 1, random, seq }) < bound)
      },
    ),
    { numRuns: 1000 },
  )
})

test('firstIdAt stays an id at the ends of time', () => {
  assert.is(firstIdAt(0), '00000000-0000-7000-8000-000000000000')
  assert.is(firstIdAt(-5), firstIdAt(0))
  assert.is(firstIdAt(2 ** 48 - 1), 'ffffffff-ffff-7000-8000-000000000000')
  assert.is(firstIdAt(8.64e15), firstIdAt(2 ** 48 - 1))
})

test('only lower-case UUIDs can be ids', () => {
  assert.ok(isId(NIL_ID))
  const id = systemIds.next()
  const changed = [id.toUpperCase(), `${id} `, `{${id}}`, id.slice(1), `${id}\n`, id.replaceAll('-', '')]
  for (const text of ['', 'x', ...changed]) {
    assert.not.ok(isId(text), text)
  }
})

test.run()
