import { displayMoney, type Paisa } from '../../shared/money.ts'
import { type Style, styled } from '../terminal/printable-text.ts'

/** One thing that had to come out exactly so, and how it came out. */
export interface Check {
  name: string
  expected: string
  found: string
  ok: boolean
}

/** What one step says: rows of cells for people, checks for the exit code. */
export class StepReport {
  readonly title: string
  readonly rows: string[][] = []
  readonly checks: Check[] = []

  constructor(title: string) {
    this.title = title
  }

  row(...cells: string[]): void {
    this.rows.push(cells)
  }

  /** Notes whether `found` is what it has to be; the demo goes on either way and fails in the end. */
  check(name: string, found: unknown, expected: unknown): void {
    const ok = String(found) === String(expected)
    this.checks.push({ name, expected: String(expected), found: String(found), ok })
  }

  /** The rows, aligned but for the last cell, and under them each failed check. */
  lines(paint: Paint): string[] {
    const widthOf = (at: number) =>
      Math.max(...this.rows.map((row) => (at < row.length - 1 ? (row[at] ?? '').length : 0)))
    const failed = this.checks.filter((check) => !check.ok)
    return [
      ...this.rows.map((row) =>
        `${INDENT}${row.map((cell, at) => cell.padEnd(widthOf(at))).join('  ')}`.trimEnd(),
      ),
      ...failed.map(({ name, found, expected }) =>
        paint('red', `${INDENT}✗ ${name}: ${found}, must be ${expected}`),
      ),
    ]
  }
}

const INDENT = '     '

/** Colors a text, or leaves it as it is. */
export type Paint = (style: Style, text: string) => string

export function painter(color: boolean): Paint {
  return (style, text) => (color ? styled(style, text) : text)
}

/** An amount for people, without its currency: `1,309.90`. */
export function rupees(amount: Paisa): string {
  return displayMoney(amount).replace('Rs ', '')
}

/** A sum with its parts: `= 315.00 + 349.90`. */
export function addition(amounts: readonly Paisa[]): string {
  return `= ${amounts.map(rupees).join(' + ')}`
}
