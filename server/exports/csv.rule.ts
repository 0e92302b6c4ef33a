/** `number`: whole numbers, amounts and rates, which are ours; `text`: everything else, also what people typed. */
export type CellKind = 'number' | 'text'

export type CellValue = string | number | boolean | null | undefined

/** What makes a spreadsheet take a cell for a formula. */
const FORMULA_START = /^[=+\-@\t\r]/
const NEEDS_QUOTES = /[",\r\n]/

/**
 * One cell by RFC 4180. Nothing for a missing value, `""` for an empty text. A text that a spreadsheet would run as a formula
 * gets an apostrophe before it; numbers are exempt, since "-5.00" is no formula and must stay an amount.
 */
export function csvCell(value: CellValue, kind: CellKind): string {
  if (value === null || value === undefined) return ''
  const text = String(value)
  if (text === '') return '""'
  const safe = kind === 'text' && FORMULA_START.test(text) ? `'${text}` : text
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** One record of cells, with the line end that RFC 4180 wants. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.join(',')}\r\n`
}
