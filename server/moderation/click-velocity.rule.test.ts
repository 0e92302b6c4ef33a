// database: none

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { countVisit, type VisitWindow, visitsWithin } from './click-velocity.rule.ts'

const SPAN = 600_000

test('counts what comes within one span, and lets it fade over the next', () => {
  let window: VisitWindow | undefined
  for (let visit = 0; visit < 10; visit += 1) window = countVisit(window, 1000 + visit, SPAN)
  assert.ok(window)
  assert.is(visitsWithin(window, 2000, SPAN), 10)
  const next = countVisit(window, 1000 + SPAN, SPAN)
  assert.is(visitsWithin(next, 1000 + SPAN, SPAN), 11)
  assert.is(visitsWithin(next, 1000 + SPAN + SPAN / 2, SPAN), 6)
  assert.is(visitsWithin(countVisit(next, 1000 + 3 * SPAN, SPAN), 1000 + 3 * SPAN, SPAN), 1)
})

test('a clock that goes back loses no visit', () => {
  const window = countVisit(countVisit(undefined, 5000, SPAN), 1000, SPAN)
  assert.is(visitsWithin(window, 1000, SPAN), 2)
})

test('is between the visits of the last span and those of the last two', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(SPAN), { minLength: 1, maxLength: 60 }), (gaps) => {
      let at = 0
      let window: VisitWindow | undefined
      const times = gaps.map((gap) => {
        at += gap
        return at
      })
      for (const time of times) window = countVisit(window, time, SPAN)
      const counted = visitsWithin(window as VisitWindow, at, SPAN)
      assert.ok(counted >= 1)
      assert.ok(counted <= times.filter((time) => time > at - 2 * SPAN).length)
      if (at < SPAN) assert.is(counted, times.length)
    }),
    { numRuns: 500 },
  )
})

test.run()
