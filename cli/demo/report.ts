import { displayMoney, type Paisa, parseMoney } from '../../shared/money.ts'
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
  readonly rows: string[][] = []
  readonly checks: Check[] = []

  row(...cells: string[]): void {
    this.rows.push(cells)
  }

  /** Notes whether `found` is what it has to be; the demo goes on either way and fails in the end. */
  check(name: string, found: string | number, expected: string | number): void {
    const ok = String(found) === String(expected)
    this.checks.push({ name, expected: String(expected), found: String(found), ok })
  }
}

/** Colors a text, or leaves it as it is. */
export type Paint = (style: Style, text: string) => string

export function painter(color: boolean): Paint {
  return (style, text) => (color ? styled(style, text) : text)
}

const INDENT = '     '

/** The rows of a step, aligned but for the last cell, and under them each failed check. */
export function stepLines({ rows, checks }: StepReport, paint: Paint): string[] {
  const widths: number[] = []
  for (const row of rows) {
    row.slice(0, -1).forEach((cell, at) => {
      widths[at] = Math.max(widths[at] ?? 0, cell.length)
    })
  }
  const failed = checks.filter((check) => !check.ok)
  return [
    ...rows.map(
      (row) =>
        INDENT +
        row
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join('  ')
          .trimEnd(),
    ),
    ...failed.map(({ name, found, expected }) =>
      paint('red', `${INDENT}✗ ${name}: ${found}, must be ${expected}`),
    ),
  ]
}

/** An amount on the wire, in paisa. Throws on anything else. */
export function paisa(text: string): Paisa {
  const amount = parseMoney(text)
  if (amount === null) throw new Error(`"${text}" is not a valid amount`)
  return amount
}

/** An amount for people, without its currency: `1,309.90`. */
export function rupees(amount: Paisa): string {
  return displayMoney(amount).replace('Rs ', '')
}

/** A sum with its parts: `= 315.00 + 349.90`. */
export function addition(amounts: readonly Paisa[]): string {
  return `= ${amounts.map(rupees).join(' + ')}`
}
