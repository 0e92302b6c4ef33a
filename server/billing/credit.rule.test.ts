import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { creditRefusal } from './credit.rule.ts'

const paisa = fc.integer({ min: 0, max: 10_000_000_00 })

test('credits can reach exactly the accepted total', () => {
  const check = (amount: number) => creditRefusal({ amount, acceptedTotal: 1000, earlierCredits: 400 })
  assert.equal([check(600), check(1)], [null, null])
  assert.equal(check(601), {
    code: 'conflict',
    detail: 'At most Rs 6.00 can be credited: accepted commission and fee less earlier credits.',
  })
})

test('a credit of zero, below zero or half a paisa is refused', () => {
  for (const amount of [0, -5, 0.5, Number.NaN]) {
    const refusal = creditRefusal({ amount, acceptedTotal: 1000, earlierCredits: 0 })
    assert.is(refusal?.code, 'validation_failed')
  }
})

test('property: all credits together never exceed what was accepted', () => {
  fc.assert(
    fc.property(paisa, fc.array(paisa, { maxLength: 20 }), (acceptedTotal, asked) => {
      let earlierCredits = 0
      for (const amount of asked) {
        const isAllowed = creditRefusal({ amount, acceptedTotal, earlierCredits }) === null
        assert.is(isAllowed, amount > 0 && earlierCredits + amount <= acceptedTotal)
        if (isAllowed) earlierCredits += amount
      }
      assert.ok(earlierCredits <= acceptedTotal)
    }),
    { numRuns: 300 },
  )
})

test.run()
