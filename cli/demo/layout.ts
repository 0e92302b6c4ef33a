import { type Style, styled } from '../terminal/printable-text.ts'
import type { StepReport } from './step-report.ts'

/** Colours a text, or leaves it as it is. */
export type Paint = (style: Style, text: string) => string

export function painter(colour: boolean): Paint {
  return (style, text) => (colour ? styled(style, text) : text)
}

const AMOUNT = /^-?(?:Rs )?\d[\d,]*\.\d\d$/
const INDENT = '     '

/** Rows of cells as aligned lines: columns with amounts to the right, all others to the left, the last one free. */
export function tableLines(rows: readonly (readonly string[])[]): string[] {
  const columns: { width: number; right: boolean }[] = []
  for (const row of rows) {
    row.forEach((cell, at) => {
      const { width, right } = columns[at] ?? { width: 0, right: false }
      const isAmount = AMOUNT.test(cell)
      // Nothing stands behind the last cell of a row, so it may be long.
      const counts = isAmount || at < row.length - 1
      columns[at] = { width: counts ? Math.max(width, cell.length) : width, right: right || isAmount }
    })
  }
  return rows.map((row) => {
    const cells = row.map((cell, at) => {
      const { width, right } = columns[at] ?? { width: 0, right: false }
      return right && (AMOUNT.test(cell) || at < row.length - 1) ? cell.padStart(width) : cell.padEnd(width)
    })
    return cells.join('  ').trimEnd()
  })
}

export function headingLine(number: number, title: string, paint: Paint): string {
  return `${paint('dim', `${String(number).padStart(2)}.`)}  ${paint('bold', title)}`
}

/** The figures of a step, and under them whatever did not come out as it had to. */
export function stepLines({ rows, checks }: StepReport, paint: Paint): string[] {
  const failed = checks.filter((check) => !check.ok)
  return [
    ...tableLines(rows).map((line) => INDENT + line),
    ...failed.map((check) =>
      paint('red', `${INDENT}WRONG  ${check.name}: ${check.found}, must be ${check.expected}`),
    ),
  ]
}
