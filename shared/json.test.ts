import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { jsonOrNull } from './json.ts'

test('reads JSON, and answers null for anything else', () => {
  assert.equal(jsonOrNull('{"amount":["1.00",2]}'), { amount: ['1.00', 2] })
  for (const text of ['', '{', "{'a':1}", 'undefined']) assert.is(jsonOrNull(text), null, text)
})

test.run()
