import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type AttemptFacts,
  decideAttempt,
  hasFailedForLong,
  LONGEST_DELAY_MS,
  RETRY_DELAYS_MS,
} from './delivery-retry.rule.ts'

const NOW = Date.parse('2026-11-01T00:00:00Z')
const HOUR = 3_600_000
const failed: AttemptFacts = { attempt: 1, status: 500, retryAfter: null, now: NOW, jitter: 0 }
const waitOf = (facts: Partial<AttemptFacts>) => {
  const decision = decideAttempt({ ...failed, ...facts })
  return decision.kind === 'retry' ? decision.dueAt - NOW : decision.kind
}

test('2xx is success and 410 ends the endpoint; all else, also 3xx and 4xx, is tried again', () => {
  const kindOf = (status: number | null) => decideAttempt({ ...failed, status }).kind
  assert.equal([200, 204, 299].map(kindOf), ['delivered', 'delivered', 'delivered'])
  for (const status of [null, 100, 301, 304, 400, 404, 500, 503]) assert.is(kindOf(status), 'retry')
  assert.is(kindOf(410), 'gone')
})

test('the waits grow to a day, and after the last one there is no further attempt', () => {
  const waits = RETRY_DELAYS_MS.map((_, index) => waitOf({ attempt: index + 1 }))
  const hours = [2, 5, 10, 14, 20, 24].map((count) => count * HOUR)
  assert.equal(waits, [5000, 300_000, 1_800_000, ...hours])
  assert.is(waitOf({ attempt: RETRY_DELAYS_MS.length + 1 }), 'failed')
  assert.is(waitOf({ attempt: 50 }), 'failed')
})

test('jitter lengthens a wait by up to a tenth', () => {
  assert.is(waitOf({ attempt: 2, jitter: 0.5 }), 315_000)
  for (const attempt of RETRY_DELAYS_MS.keys()) {
    const wait = waitOf({ attempt: attempt + 1, jitter: 0.999 })
    assert.ok(typeof wait === 'number' && wait <= LONGEST_DELAY_MS)
  }
})

test('Retry-After lengthens a wait, to at most a day, and never shortens it', () => {
  assert.is(waitOf({ retryAfter: '120' }), 120_000)
  assert.is(waitOf({ retryAfter: new Date(NOW + HOUR).toUTCString() }), HOUR)
  assert.is(waitOf({ retryAfter: '999999999' }), 24 * HOUR)
  for (const useless of ['0', '1', '-5', 'soon', '', '1e9', new Date(NOW - HOUR).toUTCString()])
    assert.is(waitOf({ retryAfter: useless }), 5000, useless)
})

test('an endpoint is disabled after five days of failure', () => {
  assert.is(hasFailedForLong(null, NOW), false)
  assert.is(hasFailedForLong(NOW - 5 * 24 * HOUR + 1, NOW), false)
  assert.is(hasFailedForLong(NOW - 5 * 24 * HOUR, NOW), true)
})

test.run()
