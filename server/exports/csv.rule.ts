/** `number`: our own numbers, amounts and rates. `text`: everything else, user input included. */
export type CellKind = 'number' | 'text'

export type CellValue = string | number | boolean | null | undefined

/** Characters that start a formula in a spreadsheet, with the wide and small forms of East Asian input. */
const SIGNS = '=+\\-@＝＋－＠﹢﹣﹦﹫'
/**
 * Places where a cell can start: the beginning, and after a separator of another locale or a line break. Quotes do not protect those: if
 * semicolons separate the cells, our quotes are not at the start of a cell.
 */
const FORMULA_STARTS = new RegExp(`^(?=[\\t\\r])|(?=[${SIGNS}])(?<=(?:^|[;\\t\\r\\n])"*)`, 'g')
const NEEDS_QUOTES = /[",\r\n]/

/**
 * One cell by RFC 4180. A missing value is empty, an empty text is `""`. A text that a spreadsheet would evaluate gets an apostrophe before
 * the formula. Numbers are exempt: "-5.00" is an amount.
 */
export function csvCell(value: CellValue, kind: CellKind): string {
  if (value === null || value === undefined) return ''
  const text = String(value)
  if (text === '') return '""'
  const safe = kind === 'text' ? text.replace(FORMULA_STARTS, "'") : text
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** One record, with the line end of RFC 4180. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.join(',')}\r\n`
}
