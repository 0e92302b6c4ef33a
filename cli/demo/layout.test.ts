import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { terminalLine } from '../terminal/printable-text.ts'
import { painter, stepLines, tableLines } from './layout.ts'
import { StepReport } from './step-report.ts'

test('columns are aligned, amounts to the right', () => {
  assert.equal(
    tableLines([
      ['order', 'net', 'what'],
      ['#1001', '4,999.00', 'one'],
      ['#1', '0.00', 'a free order'],
    ]),
    ['order       net  what', '#1001  4,999.00  one', '#1         0.00  a free order'],
  )
})

test('a long text at the end widens nothing', () => {
  assert.equal(
    tableLines([
      ['a', 'a long explanation at the end of its row'],
      ['b', 'x', 'y'],
    ]),
    ['a  a long explanation at the end of its row', 'b  x  y'],
  )
})

test('what did not come out as it had to is shown under the figures', () => {
  const report = new StepReport()
  report.row('sales', '4')
  report.check('accepted sales', 4, 4)
  report.check('rejected sales', 5, 6)
  const lines = stepLines(report, painter(false))
  assert.equal(lines, ['     sales  4', '     WRONG  rejected sales: 5, must be 6'])
})

test('colour only where it is wanted', () => {
  assert.is(painter(false)('red', 'text'), 'text')
  assert.is(terminalLine(painter(true)('red', 'text')), '\u001b[31mtext\u001b[39m')
})

test.run()
