import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { skewOf, skewText } from './clock-skew.rule.ts'

test('the round trip of the question counts as no skew', () => {
  assert.is(skewOf({ before: 1000, database: 1500, after: 3000 }), 0)
  assert.is(skewOf({ before: 5000, database: 2000, after: 5100 }), 3000)
  assert.is(skewOf({ before: 1000, database: 16_100, after: 1100 }), -15_000)
})

test('is said in words', () => {
  assert.is(skewText(-3500), "3.5 s behind the database server's")
  assert.is(skewText(3_600_000), "60 min ahead of the database server's")
})

test.run()
