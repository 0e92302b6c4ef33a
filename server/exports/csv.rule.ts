/** `number`: our own numbers, amounts and rates. `text`: everything else, user input included. */
type CellKind = 'number' | 'text'

type CellValue = string | number | boolean | null | undefined

/** Characters that start a formula in a spreadsheet, with the wide and small forms of East Asian input. */
const SIGNS = '=+\\-@＝＋－＠﹢﹣﹦﹫'
/**
 * Places where a cell can start: the beginning, and after a separator of another locale or a line break. Quotes do not protect those: if
 * semicolons separate the cells, our quotes are not at the start of a cell.
 */
const FORMULA_STARTS = new RegExp(`^(?=[\\t\\r])|(?=[${SIGNS}])(?<=(?:^|[;\\t\\r\\n])"*)`, 'g')
const NEEDS_QUOTES = /[",\r\n]/
/** Texts that a spreadsheet reads as a number, a date or a time: it rounds order ids to 15 digits and makes "3-4" a day. */
const LOOKS_NUMERIC = /^[\s+.,:/%-]*\p{Nd}[\p{Nd}\s+.,:/%-]*(?:e[+-]?\d+)?$/iu
const LONGEST_NUMERIC = 100
/** By this a spreadsheet opens the file as UTF-8. */
export const BYTE_ORDER_MARK = '\ufeff'

/**
 * One cell by RFC 4180. A missing value is empty, an empty text is `""`. A text that a spreadsheet would evaluate gets an apostrophe before
 * the formula. Numbers are exempt: "-5.00" is an amount. With `excel`, a text that looks like a number becomes the formula of a constant
 * text, `="12"`, which holds no quote that could end it.
 */
export function csvCell(value: CellValue, kind: CellKind, { excel = false } = {}): string {
  if (value === null || value === undefined) return ''
  const text = String(value)
  if (text === '') return '""'
  const isConstant = excel && kind === 'text' && text.length <= LONGEST_NUMERIC && LOOKS_NUMERIC.test(text)
  if (isConstant) return `"=""${text}"""`
  const safe = kind === 'text' ? text.replace(FORMULA_STARTS, "'") : text
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** One record, with the line end of RFC 4180. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.join(',')}\r\n`
}

/** A CSV column: the wire field; dots lead into nested objects. */
export interface Column {
  path: string
  kind: CellKind
}

/** The first line of a CSV file. */
export function csvHeader(columns: readonly Column[]): string {
  return csvLine(columns.map(({ path }) => csvCell(path, 'text')))
}

/** Returns the function that turns wire objects into lines of CSV. */
export function csvRecords(columns: readonly Column[], style?: { excel: boolean }): (item: object) => string {
  const cells = columns.map(({ path, kind }) => ({ names: path.split('.'), kind }))
  return (item) => csvLine(cells.map(({ names, kind }) => csvCell(valueAt(item, names), kind, style)))
}

function valueAt(item: object, names: readonly string[]): CellValue {
  let value: unknown = item
  for (const name of names) {
    if (value === null || value === undefined) return null
    value = (value as Record<string, unknown>)[name]
  }
  return value as CellValue
}
