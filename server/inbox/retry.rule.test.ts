import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { decideRetry, MAX_ATTEMPTS } from './retry.rule.ts'

test('the last try is the last', () => {
  assert.is(MAX_ATTEMPTS, 12)
  assert.is(decideRetry(11, 0).kind, 'retry')
  assert.equal(decideRetry(12, 0), { kind: 'set_aside' })
  assert.equal(decideRetry(13, 0.5), { kind: 'set_aside' })
})

test('the first retry comes within a second, and the longest waits double up to ten minutes', () => {
  const longest = Array.from({ length: 11 }, (_, index) => {
    const decision = decideRetry(index + 1, 0.999_999_999)
    return decision.kind === 'retry' ? decision.delayMs : null
  })
  assert.equal(
    longest,
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600].map((seconds) => seconds * 1000),
  )
})

test.run()
