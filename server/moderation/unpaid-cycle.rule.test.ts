// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isOverdue } from './unpaid-cycle.rule.ts'

const DAY = 86_400_000
const facts = { closedAt: 5 * DAY, resolvedAt: null, graceDays: 14 }

test('a closed cycle is overdue from the end of its grace on', () => {
  assert.not(isOverdue({ ...facts, now: 19 * DAY - 1 }))
  assert.ok(isOverdue({ ...facts, now: 19 * DAY }))
})

test('a person who has looked gives it another grace', () => {
  const looked = { ...facts, resolvedAt: 20 * DAY }
  assert.not(isOverdue({ ...looked, now: 34 * DAY - 1 }))
  assert.ok(isOverdue({ ...looked, now: 34 * DAY }))
})

test.run()
