import { displayMoney, type Paisa } from '../../shared/money.ts'
import { printable, styled, unstyled } from './printable-text.ts'

/** Where the output goes: the width of a terminal, or `null` for a pipe or file. */
export interface Layout {
  width: number | null
  colour: boolean
  /** Whole ids at a terminal too. */
  fullIds?: boolean
}

/** Columns stand in the order of their importance: where a terminal is too narrow for all, the last ones are left out. */
export interface Column {
  title: string
  /** Numbers and money stand to the right. */
  right?: boolean
  /** Fitted to a narrow terminal; ids and amounts never are. `wrap` breaks the text between words instead of cutting it. */
  flexible?: boolean | 'wrap'
  /** Of a flexible column: later columns make room until it has this width. */
  least?: number
}

/** A column with what it shows of each row; `null` is a dash. */
export interface RowColumn<Row> extends Column {
  cell: (row: Row) => string | number | null
}

/** How rows are shown: to people in a table, with `--json` as documents. */
export interface ListShape<Row> {
  columns: readonly RowColumn<Row>[]
  wire: (row: Row) => unknown
}

/** A column of amounts, in paisa. */
export function money<Row>(title: string, amount: (row: Row) => Paisa): RowColumn<Row> {
  return { title, right: true, cell: (row) => displayMoney(amount(row)) }
}

/** One row's cells. */
export function cellsOf<Row>(columns: readonly RowColumn<Row>[], row: Row): string[] {
  return columns.map(({ cell }) => String(cell(row) ?? '–'))
}

const GAP = '  '
/** Of a flexible column, unless it says otherwise. */
const LEAST = 16

/**
 * Rows under titles, each on one line: aligned, fitted to the terminal's width, with short ids; or with tabs between the cells where no
 * person reads (whole values and plain amounts, for `cut` and `awk`). A `wrap` column takes as many lines as it needs.
 */
export function layoutTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  layout: Layout,
): string[] {
  const titles = columns.map((column) => column.title)
  const lines = [titles, ...rows].map((row) => row.map((cell) => shortIds(printable(cell), layout)))
  if (layout.width === null) {
    return lines.map((row) =>
      row.map((cell, at) => (columns[at]?.right ? plainAmount(cell) : cell)).join('\t'),
    )
  }
  const shown = fit(columns, lines, layout.width)
  return lines.flatMap((row, index) => {
    const cells = shown.map((column) => fitCell(row[column.at] ?? '', column))
    const height = Math.max(...cells.map((parts) => parts.length))
    return Array.from({ length: height }, (_, part) => {
      const parts = shown.map(({ width }, place) => cells[place]?.[part] ?? ' '.repeat(width))
      const line = parts.join(GAP).trimEnd()
      return index === 0 ? bold(line, layout) : line
    })
  })
}

/** `Rs 4,999.00` → `4999.00` and `1,250` → `1250`, for programs; any other text as it is. */
export function plainAmount(text: string): string {
  return /^[+-]?(Rs )?[\d,]+(\.\d\d)?( [DC]r)?$/.test(text) ? text.replace(/Rs |,/g, '') : text
}

/** Our ids, which are UUIDv7; not those of the processor, which contain one. */
const ID = /(?<![\w-])[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{4}([0-9a-f]{8})(?![\w-])/g

/** The text with each id cut to its last eight characters, which commands accept; whole where no person reads. */
export function shortIds(text: string, { width, fullIds }: Layout): string {
  return width === null || fullIds ? text : text.replace(ID, '$1')
}

/** The lines of one cell, each as wide as its column. */
function fitCell(text: string, { flexible, width, right }: FittedColumn): string[] {
  const parts = flexible === 'wrap' ? wrap(text, width) : [text]
  return parts.map((part) => align(cutText(part, width), width, right))
}

/** The text in lines of at most `width` columns, broken between words, with `indent` blanks before all but the first. */
export function wrap(text: string, width: number, indent = 0): string[] {
  const [first = '', ...words] = text.split(' ')
  const lines: string[] = []
  let line = first
  for (const word of words) {
    const longer = `${line} ${word}`
    const length = lengthOf(unstyled(line))
    // Nothing is broken before the indent: a line would hold nothing else.
    if (length <= indent || lengthOf(unstyled(longer)) <= width) line = longer
    else {
      lines.push(line.trimEnd())
      line = ' '.repeat(indent) + word
    }
  }
  return [...lines, line]
}

/** What is beside a label, which ends with two blanks or more, stays beside it. */
const LABEL = /^ *(?:[^ ]+(?: [^ ]+)* {2,})?/

/** A line of prose in lines of at most `width` columns, each with the indent of the first one's text. */
export function wrapLine(line: string, width: number): string[] {
  if (line.length <= width) return [line]
  const text = unstyled(line)
  if (lengthOf(text) <= width) return [line]
  const label = lengthOf(LABEL.exec(text)?.[0] ?? '')
  const blanks = text.length - text.trimStart().length
  return wrap(line, width, label <= width / 2 ? label : blanks)
}

function bold(line: string, layout: Layout): string {
  return layout.colour ? styled('bold', line) : line
}

/** A column that is shown, at its place in a row. */
type FittedColumn = Column & { at: number; width: number }

function totalWidth(columns: readonly { width: number }[]): number {
  return columns.reduce((sum, { width }) => sum + width, GAP.length * (columns.length - 1))
}

/** Leaves out the last columns until the flexible ones have room, then takes from the widest flexible one until the row fits. */
function fit(
  columns: readonly Column[],
  lines: readonly (readonly string[])[],
  room: number,
): FittedColumn[] {
  const all = columns.map((column, at) => {
    return { ...column, at, width: lines.reduce((most, row) => Math.max(most, lengthOf(row[at] ?? '')), 0) }
  })
  let shown = all
  const least = ({ flexible, width, least = LEAST, at }: FittedColumn) =>
    flexible ? Math.min(width, at === shown.length - 1 ? LEAST : least) : width
  while (shown.length > 1 && totalWidth(shown.map((one) => ({ width: least(one) }))) > room) {
    shown = shown.slice(0, -1)
  }
  for (let excess = totalWidth(shown) - room; excess > 0; excess -= 1) {
    const narrowable = shown.filter((one) => one.width > least(one))
    const [widest] = narrowable.sort((one, other) => other.width - one.width)
    if (widest === undefined) break
    widest.width -= 1
  }
  // Alone, any column is cut.
  return shown.map((one) => ({ ...one, width: Math.min(one.width, room) }))
}

/** What terminals draw two columns wide: emoji and the scripts of East Asia. */
const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u
/** Nothing in it needs a closer look: as good as every text. */
const PLAIN = /^[\x20-\x7e\u2013\u2026]*$/

/** The text in at most `width` columns, with `…` at the end if it is cut. */
export function cutText(text: string, width: number): string {
  if (lengthOf(text) <= width) return text
  let kept = ''
  let used = 0
  for (const { segment } of charactersOf(text)) {
    used += WIDE.test(segment) ? 2 : 1
    if (used > width - 1) break
    kept += segment
  }
  return `${kept}…`
}

function align(text: string, width: number, right = false): string {
  const pad = ' '.repeat(Math.max(0, width - lengthOf(text)))
  return right ? pad + text : text + pad
}

let segmenter: Intl.Segmenter | undefined

/** As people count them: a letter with its marks is one. */
function charactersOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  return segmenter.segment(text)
}

/** How many columns a text takes on a terminal. */
function lengthOf(text: string): number {
  if (PLAIN.test(text)) return text.length
  let length = 0
  for (const { segment } of charactersOf(text)) length += WIDE.test(segment) ? 2 : 1
  return length
}
