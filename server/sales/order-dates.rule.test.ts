import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { suspiciousDates } from './order-dates.rule.ts'

const MINUTE = 60_000
const DAY = 86_400_000
const AT = 1_790_000_000_000

const TIMES = {
  createdAt: AT,
  receivedAt: AT,
  triggeredAt: AT,
  clickedAt: AT,
  codeStartedAt: null,
  firstReportedAt: AT,
}

const suspicious = (dates: Partial<Parameters<typeof suspiciousDates>[0]>, oldestDays = 90) =>
  suspiciousDates({ ...TIMES, ...dates }, oldestDays)

test('an order created before it came in, after its click, is as it should be', () => {
  assert.equal(suspicious({}), [])
  assert.equal(suspicious({ triggeredAt: null, clickedAt: null }), [])
  assert.equal(suspicious({ receivedAt: AT + 89 * DAY, triggeredAt: AT + 89 * DAY }), [])
})

test('five minutes are allowed for clocks that differ, and no more', () => {
  const late = AT + 5 * MINUTE + 1
  assert.equal(suspicious({ createdAt: late - 1, clickedAt: null }), [])
  assert.equal(suspicious({ createdAt: late }), ['after_receipt', 'after_trigger'])
  assert.equal(suspicious({ createdAt: late, receivedAt: late }), ['after_trigger'])
  assert.equal(suspicious({ clickedAt: late - 1 }), [])
  assert.equal(suspicious({ clickedAt: late }), ['before_click'])
})

test('an order with a click is unusually old from the given day on, counted to its payment', () => {
  const received = { receivedAt: AT + 200 * DAY }
  assert.equal(suspicious({ ...received, triggeredAt: AT + 90 * DAY }), ['long_before_payment'])
  assert.equal(suspicious({ ...received, triggeredAt: AT + 89 * DAY }), [])
  assert.equal(suspicious({ ...received, triggeredAt: null }), ['long_before_payment'])
  assert.equal(suspicious({ ...received, triggeredAt: null, clickedAt: null }), [])
  assert.equal(suspicious({ ...received, triggeredAt: null }, 0), [])
})

test('an order with a coupon code and no click is unusually old from the same day on', () => {
  const received = { receivedAt: AT + 400 * DAY, triggeredAt: null, clickedAt: null }
  assert.equal(suspicious({ ...received, codeStartedAt: AT - DAY }), ['long_before_payment'])
  assert.equal(suspicious({ ...received, codeStartedAt: AT - DAY, receivedAt: AT + 89 * DAY }), [])
})

test('an order dated before its coupon code is suspicious, unless it was reported before the code began', () => {
  const late = AT + 5 * MINUTE + 1
  const dates = { clickedAt: null, codeStartedAt: late }
  assert.equal(suspicious({ ...dates, firstReportedAt: late }), ['before_code'])
  assert.equal(suspicious({ ...dates, firstReportedAt: late - 1 }), [])
  assert.equal(suspicious({ ...dates, firstReportedAt: late, codeStartedAt: late - 1 }), [])
})

test.run()
