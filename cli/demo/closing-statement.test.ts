import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { expectedFigures, statementRows } from './closing-statement.ts'

const expected = {
  charged: [
    { commission: 31_500, fee: 3_150 },
    { commission: 34_990, fee: 3_499 },
  ],
  open: [{ commission: 10_000, fee: 1_000 }],
  rejected: 6,
  payoutUnit: 1,
}

test('what was charged is billed, paid and paid out; the rest waits', () => {
  assert.equal(expectedFigures(expected), {
    merchant: { accepted: 3, rejected: 6, unbilled: 11_000, billed: 73_139, paid: 73_139 },
    creator: { pending: 10_000, released: 0, inTransit: 0, paid: 66_490 },
    platform: { fees: 7_649, credits: 0, clearing: 6_649 },
  })
})

test('with payouts of whole rupees, the paisa stay in the balance', () => {
  const whole = {
    ...expected,
    charged: [...expected.charged, { commission: 81, fee: 8 }],
    payoutUnit: 100,
  }
  const figures = expectedFigures(whole)
  assert.equal(
    [figures.creator.paid, figures.creator.released, figures.platform.clearing],
    [66_500, 71, 6_728],
  )
  const rows = statementRows(whole, figures, { merchant: 'M', creator: 'C' })
  assert.equal(
    rows.filter((row) => row[1] === 'paid' || row[1] === 'released').map((row) => row.slice(2)),
    [
      ['732.28', 'all that was billed'],
      ['665.00', '= 315.00 + 349.90 + 0.81 − 0.71'],
      ['0.71', 'payouts are multiples of 1.00'],
    ],
  )
  assert.equal(
    rows.slice(-2).map((row) => row[2]),
    ['177.28', '177.28'],
  )
})

test('both sides of the statement are equal', () => {
  const rows = statementRows(expected, expectedFigures(expected), { merchant: 'M', creator: 'C' })
  const amounts = rows.slice(-2).map((row) => row[2])
  assert.equal(amounts, ['176.49', '176.49'])
})

test('each figure stands beside its addition', () => {
  const rows = statementRows(expected, expectedFigures(expected), { merchant: 'M', creator: 'C' })
  assert.equal(
    rows.find((row) => row[1] === 'clearing'),
    ['', 'clearing', '66.49', '= 731.39 − 664.90'],
  )
  assert.equal(
    rows.find((row) => row[1] === 'unbilled'),
    ['', 'unbilled', '110.00', '= 841.39 − 731.39'],
  )
})

test.run()
