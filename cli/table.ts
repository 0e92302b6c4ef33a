import type { Column, Layout } from './output.ts'

const GAP = '  '
const NARROWEST = 8

/**
 * Rows under titles: aligned and cut to the terminal's width, or with tabs between the cells where no person reads
 * (whole values, for `cut` and `awk`).
 */
export function layoutTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  layout: Layout,
): string[] {
  const titles = columns.map((column) => column.title)
  const lines = [titles, ...rows].map((row) => row.map(printable))
  if (layout.width === null) return lines.map((row) => row.join('\t'))
  const widths = fit(columns, naturalWidths(lines), layout.width)
  return lines.map((row, index) => {
    const cells = row.map((cell, at) =>
      align(cut(cell, widths[at] ?? 0), widths[at] ?? 0, columns[at]?.right),
    )
    const line = cells.join(GAP).trimEnd()
    return index === 0 && layout.colour ? `\u001b[1m${line}\u001b[22m` : line
  })
}

/** Texts come from stores and users: nothing in them may steer the terminal or break the row. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
}

function naturalWidths(lines: readonly (readonly string[])[]): number[] {
  const [titles = []] = lines
  return titles.map((_, at) => Math.max(...lines.map((row) => lengthOf(row[at] ?? ''))))
}

/** Takes from the widest flexible column until the row fits, or nothing more can be taken. */
function fit(columns: readonly Column[], natural: readonly number[], width: number): number[] {
  const widths = [...natural]
  let excess = widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1) - width
  for (; excess > 0; excess -= 1) {
    const widest = columns
      .map((column, at) => ({ at, width: column.flexible ? (widths[at] ?? 0) : 0 }))
      .reduce((most, one) => (one.width > most.width ? one : most), { at: -1, width: NARROWEST })
    if (widest.at === -1) break
    widths[widest.at] = widest.width - 1
  }
  return widths
}

function cut(text: string, width: number): string {
  const characters = [...text]
  return characters.length > width ? `${characters.slice(0, width - 1).join('')}…` : text
}

function align(text: string, width: number, right = false): string {
  const pad = ' '.repeat(Math.max(0, width - lengthOf(text)))
  return right ? pad + text : text + pad
}

function lengthOf(text: string): number {
  return [...text].length
}
