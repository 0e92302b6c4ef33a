import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  displayLineAmount,
  exactAmount,
  formatLineAmount,
  sumOfAmounts,
  timesRounded,
} from './line-amount.ts'

test('prices of more than two places stay exact until they are multiplied', () => {
  assert.is(exactAmount('1', '00'), 100)
  assert.is(exactAmount('1', '5'), 150)
  const price = exactAmount('1', '005')
  assert.is(price, '100.5')
  assert.is(timesRounded(price, 1000), 100_500)
  // Half up to the paisa, once.
  assert.is(timesRounded(price, 1), 101)
  assert.is(timesRounded(price, 3), 302)
  assert.is(timesRounded(100, 1, 3), 33)
})

test('sums are exact', () => {
  assert.is(sumOfAmounts([]), 0)
  assert.is(sumOfAmounts(['100.5', '100.5', 99]), 300)
  assert.is(sumOfAmounts(['0.1', '0.2']), '0.3')
})

test('amounts are written in rupees with all their places', () => {
  assert.is(formatLineAmount(1005), '10.05')
  assert.is(formatLineAmount('100.5'), '1.005')
  assert.is(displayLineAmount('125000.5'), 'Rs 1,250.005')
})

test.run()
