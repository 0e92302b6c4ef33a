import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { currentAmount, orderedAmount, shareOfRemaining } from './order-amounts.rule.ts'

test('a line is worth what is left of it, with its share of the discount, and never less than nothing', () => {
  const line = { unit_price: '100.5', discount: 101, quantity: 2, original_quantity: 3 }
  assert.is(orderedAmount(line), 302 - 101)
  assert.is(currentAmount(line), 201 - 67)
  assert.is(currentAmount({ ...line, quantity: 3 }), 201)
  assert.is(currentAmount({ ...line, quantity: 4 }), 402 - 101, 'pieces that were added')
  assert.is(shareOfRemaining(101, line), 67)
  assert.is(shareOfRemaining('0.5', { ...line, quantity: 3 }), 1)
  const free = { ...line, discount: 900 }
  assert.equal([orderedAmount(free), currentAmount(free)], [0, 0])
})

test.run()
