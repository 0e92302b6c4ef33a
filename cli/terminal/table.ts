import { displayMoney, type Paisa } from '../../shared/money.ts'
import { printable, styled, unstyled } from './printable-text.ts'

/** Where the output goes: the width of a terminal, or `null` for a pipe or file. */
export interface Layout {
  width: number | null
  colour: boolean
}

export interface Column {
  title: string
  /** Numbers and money stand to the right. */
  right?: boolean
  /** Fitted to a narrow terminal; ids and amounts never are. `wrap` breaks the text between words instead of cutting it. */
  flexible?: boolean | 'wrap'
  /** Left out where a terminal is too narrow for all columns, the last one first. */
  optional?: boolean
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
export function money<Row>(
  title: string,
  amount: (row: Row) => Paisa,
  more: Partial<Column> = {},
): RowColumn<Row> {
  return { title, right: true, ...more, cell: (row) => displayMoney(amount(row)) }
}

/** One row's cells. */
export function cellsOf<Row>(columns: readonly RowColumn<Row>[], row: Row): string[] {
  return columns.map(({ cell }) => String(cell(row) ?? '–'))
}

const GAP = '  '
const NARROWEST = 8
/** Optional columns make room until the flexible ones have this width. */
const COMFORTABLE = 16

/**
 * Rows under titles: aligned and cut to the terminal's width, or with tabs between the cells where no person reads
 * (whole values, for `cut` and `awk`). A table that cannot be cut to the width, since ids and amounts never are, is
 * printed as one block a row.
 */
export function layoutTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  layout: Layout,
): string[] {
  const titles = columns.map((column) => column.title)
  const lines = [titles, ...rows].map((row) => row.map(printable))
  if (layout.width === null) {
    return lines.map((row) =>
      row.map((cell, at) => (columns[at]?.right ? plainAmount(cell) : cell)).join('\t'),
    )
  }
  const shown = fit(columns, lines, layout.width)
  if (totalWidth(shown) > layout.width && rows.length > 0) return layoutBlocks(columns, lines, layout)
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

/** `Rs 4,999.00` → `4999.00`, for programs; any other text as it is. */
export function plainAmount(text: string): string {
  return /^[+-]?Rs [\d,]+\.\d\d( [DC]r)?$/.test(text) ? text.replace(/Rs |,/g, '') : text
}

/** The lines of one cell, each as wide as its column. */
function fitCell(text: string, { flexible, width, right }: FittedColumn): string[] {
  const parts = flexible === 'wrap' ? wrap(text, width) : [text]
  return parts.map((part) => align(cutText(part, width), width, right))
}

/** One block a row: its first cell, and under it every other one beside its title. */
function layoutBlocks(
  columns: readonly Column[],
  lines: readonly (readonly string[])[],
  layout: Layout,
): string[] {
  const [titles = [], ...rows] = lines
  const width = Math.max(...titles.map(lengthOf))
  const room = Math.max(NARROWEST, (layout.width ?? 80) - width - 2 * GAP.length)
  const block = ([first = '', ...cells]: readonly string[]) => {
    const beside = cells.flatMap((cell, at) => {
      if (cell === '' || cell === '–') return []
      const parts = columns[at + 1]?.right ? [cell] : wrap(cell, room)
      const title = align(titles[at + 1] ?? '', width)
      return parts.map((part, line) => `${GAP}${line === 0 ? title : ' '.repeat(width)}${GAP}${part}`)
    })
    return [bold(cutText(first, layout.width ?? 80), layout), ...beside]
  }
  return rows.flatMap((row, index) => (index > 0 ? ['', ...block(row)] : block(row)))
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

/** Leaves out optional columns, and takes from the widest flexible one until the row fits or nothing more can be taken. */
function fit(
  columns: readonly Column[],
  lines: readonly (readonly string[])[],
  room: number,
): FittedColumn[] {
  let shown = columns.map((column, at) => {
    return { ...column, at, width: lines.reduce((most, row) => Math.max(most, lengthOf(row[at] ?? '')), 0) }
  })
  const least = ({ flexible, width }: FittedColumn) => (flexible ? Math.min(width, COMFORTABLE) : width)
  while (totalWidth(shown.map((one) => ({ width: least(one) }))) > room) {
    const last = shown.findLast(({ optional }) => optional)
    if (last === undefined) break
    shown = shown.filter((one) => one !== last)
  }
  for (let excess = totalWidth(shown) - room; excess > 0; excess -= 1) {
    const narrowable = shown.filter(({ flexible, width }) => flexible && width > NARROWEST)
    const [widest] = narrowable.sort((one, other) => other.width - one.width)
    if (widest === undefined) break
    widest.width -= 1
  }
  return shown
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
