/** `number`: whole numbers, amounts and rates, which are ours; `text`: everything else, also what people typed. */
export type CellKind = 'number' | 'text'

export type CellValue = string | number | boolean | null | undefined

/** What makes a spreadsheet take a cell for a formula, also in the wide and small forms of East Asian input. */
const SIGNS = '=+\\-@＝＋－＠﹢﹣﹦﹫'
/**
 * Places where a cell begins: the start, and what follows a separator of another locale or a line break. Quotes do not protect
 * those: where semicolons part the cells, our quotes do not stand at the start of a cell.
 */
const FORMULA_STARTS = new RegExp(`^(?=[\\t\\r])|(?=[${SIGNS}])(?<=(?:^|[;\\t\\r\\n])"*)`, 'g')
const NEEDS_QUOTES = /[",\r\n]/

/**
 * One cell by RFC 4180. Nothing for a missing value, `""` for an empty text. A text that a spreadsheet would run as a formula
 * gets an apostrophe before the formula; numbers are exempt, since "-5.00" is no formula and must stay an amount.
 */
export function csvCell(value: CellValue, kind: CellKind): string {
  if (value === null || value === undefined) return ''
  const text = String(value)
  if (text === '') return '""'
  const safe = kind === 'text' ? text.replace(FORMULA_STARTS, "'") : text
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** One record of cells, with the line end that RFC 4180 wants. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.join(',')}\r\n`
}
