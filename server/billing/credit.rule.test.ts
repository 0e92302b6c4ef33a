import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { decideCredit } from './credit.rule.ts'

const paisa = fc.integer({ min: 0, max: 10_000_000_00 })

test('credits can reach exactly the accepted total', () => {
  const check = (amount: number) => decideCredit({ amount, acceptedTotal: 1000, earlierCredits: 400 })
  assert.equal(check(600), { kind: 'allowed', creditableAfter: 0 })
  assert.equal(check(1), { kind: 'allowed', creditableAfter: 599 })
  assert.equal(check(601), {
    kind: 'refused',
    code: 'conflict',
    detail: 'At most Rs 6.00 can be credited: accepted commission and fee less earlier credits.',
  })
})

test('a credit of zero, below zero or half a paisa is refused', () => {
  for (const amount of [0, -5, 0.5, Number.NaN]) {
    const decision = decideCredit({ amount, acceptedTotal: 1000, earlierCredits: 0 })
    assert.is(decision.kind === 'refused' && decision.code, 'validation_failed')
  }
})

test('property: all credits together never exceed what was accepted', () => {
  fc.assert(
    fc.property(paisa, fc.array(paisa, { maxLength: 20 }), (acceptedTotal, asked) => {
      let earlierCredits = 0
      for (const amount of asked) {
        const decision = decideCredit({ amount, acceptedTotal, earlierCredits })
        if (decision.kind === 'refused') continue
        earlierCredits += amount
        assert.is(decision.creditableAfter, acceptedTotal - earlierCredits)
      }
      assert.ok(earlierCredits <= acceptedTotal)
    }),
    { numRuns: 300 },
  )
})

test.run()
