// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../proof/testbed/property.ts'
import { toWireTime } from './clock.ts'

test('a time on the wire is what the language itself writes, whichever came before it', () => {
  const moment = fc.integer({ min: -1000, max: Date.UTC(9999, 11, 31) })
  const near = fc.tuple(moment, fc.integer({ min: -2500, max: 2500 })).map(([at, by]) => [at, at + by])
  fc.assert(
    fc.property(fc.array(near), (moments) => {
      for (const one of moments.flat()) assert.is(toWireTime(one), new Date(one).toISOString())
    }),
  )
  for (const one of [0, 999, 1000, 1001, Date.UTC(2026, 10, 22, 23, 59, 59, 999), Date.UTC(2026, 10, 23)])
    assert.is(toWireTime(one), new Date(one).toISOString())
})

test.run()
