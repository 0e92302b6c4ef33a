import { DateTime } from 'luxon'
import type { Page } from '../../server/platform/api/page.ts'
import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import { displayMoney, type Paisa } from '../../shared/money.ts'
import { printable, printJson, printLines, type Style, styled } from './printable-text.ts'
import {
  cellsOf,
  cutText,
  type Layout,
  type ListShape,
  layoutTable,
  plainAmount,
  type RowColumn,
  shortIds,
  wrapLine,
} from './table.ts'

export { displayMoney, formatMoney } from '../../shared/money.ts'
export { printLines } from './printable-text.ts'

/** Work that takes no longer than this shows no progress, ms. */
const QUICK_MS = 1000

/** A line for people. A command to copy stays on one line, which the terminal itself continues: broken by us, a shell would run its parts. */
export type Line = string | { command: string }

/** What a command has to say: one document with `--json`, else text for people. Nothing else goes to stdout. */
export class Output {
  readonly json: boolean
  readonly layout: Layout
  readonly #zone: string
  #waitingSince: number | null = null
  #progress = ''
  #progressShown = false
  #progressDue: NodeJS.Timeout | null = null

  constructor(options: { json: boolean; zone: string; layout: Layout }) {
    this.json = options.json
    this.layout = options.layout
    this.#zone = options.zone
  }

  /** Prints the document (on one line where no person reads), or the lines that `human` makes of it. */
  show(document: unknown, human: () => readonly Line[]): void {
    this.endProgress()
    if (this.json) printJson(document, this.layout.width === null ? 0 : 2)
    else this.print(human())
  }

  /** Prints lines for people, broken between words to the terminal's width. */
  print(lines: readonly Line[], stream: NodeJS.WriteStream = process.stdout): void {
    const { width } = this.layout
    const printed = lines.flatMap((line) => {
      if (typeof line !== 'string') return [line.command]
      return width === null ? [line] : wrapLine(line, width)
    })
    printLines(printed, stream)
  }

  /** One page of a list; `none` is said of an empty one. In a pipe, stdout holds titles and rows only, and the rest goes to stderr. */
  showPage<Row>(
    { items, next_cursor }: Page<Row>,
    { columns, wire, none }: ListShape<Row> & { none: string },
  ): void {
    const saysNone = items.length === 0 && !this.json
    const isPiped = this.layout.width === null
    this.show({ items: items.map(wire), next_cursor, more: next_cursor !== null }, () =>
      saysNone && !isPiped ? [none] : this.table(items, columns),
    )
    if (saysNone && isPiped) printLines([none], process.stderr)
    if (!this.json && next_cursor !== null) {
      printLines([`There are more: add --cursor ${next_cursor}`], process.stderr)
    }
  }

  /** Rows under titles; see `layoutTable`. */
  table<Row>(rows: readonly Row[], columns: readonly RowColumn<Row>[]): string[] {
    return layoutTable(
      columns,
      rows.map((row) => cellsOf(columns, row)),
      this.layout,
    )
  }

  /** A moment in a table. */
  moment<Row>(title: string, at: (row: Row) => number | null): RowColumn<Row> {
    return { title, cell: (row) => this.shortTime(at(row)) }
  }

  /** A moment (epoch ms) on the clock of BILLING_TIMEZONE, in pipes as RFC 3339; a dash for none. */
  time(moment: number | null): string {
    if (moment === null) return '–'
    const text = timeText(moment, this.#zone)
    return this.layout.width === null ? text.replace(' ', 'T').replace(' ', '') : text
  }

  /** The same to the minute and without the offset at a terminal, where a table has little room. */
  shortTime(moment: number | null): string {
    const text = this.time(moment)
    return this.layout.width === null ? text : text.slice(0, 'YYYY-MM-DD hh:mm'.length)
  }

  /** A text with its ids as people read them; see `shortIds`. */
  shortIds(text: string): string {
    return shortIds(text, this.layout)
  }

  style(style: Style, text: string): string {
    return this.layout.colour ? styled(style, text) : text
  }

  /** One line for each pair, the values one under the other; with `cut` no value takes a second line of the terminal. */
  pairs(
    rows: readonly (readonly [name: string, value: string] | false)[],
    { cut = false }: { cut?: boolean } = {},
  ): string[] {
    const pairs = rows.filter((row) => row !== false)
    const width = Math.max(0, ...pairs.map(([name]) => name.length))
    const room = Math.max(1, (this.layout.width ?? 0) - width - 2)
    const shown = (value: string) => {
      if (this.layout.width === null) return plainAmount(value)
      return cut ? cutText(printable(value.replace(/\s+/g, ' ')), room) : value
    }
    return pairs.map(([name, value]) => `${this.style('dim', name.padEnd(width))}  ${shown(value)}`.trimEnd())
  }

  heading(text: string): string {
    return this.style('bold', text)
  }

  /** What is being done, for people who wait at a terminal: from the second second on. */
  progress(text: string): void {
    if (!process.stderr.isTTY || this.json) return
    this.#progress = text
    this.#waitingSince ??= performance.now()
    // By a timer too: one long step must not look like no step. Where SQLite works no timer has its turn, but steps are short.
    this.#progressDue ??= setTimeout(() => this.#showProgress(), QUICK_MS).unref()
    if (performance.now() - this.#waitingSince >= QUICK_MS) this.#showProgress()
  }

  #showProgress(): void {
    const width = Math.max(8, (process.stderr.columns || 80) - 1)
    process.stderr.write(`\r\u001b[K${[...printable(this.#progress)].slice(0, width).join('')}`)
    this.#progressShown = true
  }

  endProgress(): void {
    if (this.#progressDue) clearTimeout(this.#progressDue)
    this.#progressDue = null
    if (this.#progressShown) process.stderr.write('\r\u001b[K')
    this.#progressShown = false
    this.#waitingSince = null
  }
}

export function layoutOf(stream: NodeJS.WriteStream, environment: NodeJS.ProcessEnv): Layout {
  if (!stream.isTTY) return { width: null, colour: false }
  return { width: stream.columns || 80, colour: !environment.NO_COLOR && environment.TERM !== 'dumb' }
}

/** `2026-11-20 22:30:15 +05:00` */
export function timeText(moment: number, zone: string): string {
  return DateTime.fromMillis(moment, { zone }).toFormat('yyyy-MM-dd HH:mm:ss ZZ')
}

/** A moment for `--json`: RFC 3339 in UTC. */
export function wireTime(moment: number): string
export function wireTime(moment: number | null): string | null
export function wireTime(moment: number | null): string | null {
  return moment === null ? null : new Date(moment).toISOString()
}

/** The same fields under their names on the wire: `bodiesGone` → `bodies_gone`. */
export function wireNames(fields: object): Record<string, unknown> {
  const wireName = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [wireName(name), value]))
}

const BARS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** One bar a number, as high as the number is beside the greatest; nothing is a dot. */
export function sparkline(numbers: readonly number[]): string {
  const most = Math.max(1, ...numbers)
  return numbers
    .map((number) => (number <= 0 ? '·' : (BARS[Math.ceil((number / most) * BARS.length) - 1] ?? '█')))
    .join('')
}

const UNITS = [
  ['d', DAY_MS],
  ['h', HOUR_MS],
  ['min', 60_000],
  ['s', 1000],
] as const

/** `3 d`, `5 h`, `12 min`, `40 s`, `7 ms`: as much as tells. */
export function durationText(ms: number): string {
  for (const [unit, length] of UNITS) if (ms >= length) return `${Math.floor(ms / length)} ${unit}`
  return `${Math.max(0, Math.round(ms))} ms`
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}

/** `sale_id 12, state done`: what became of an event or a scheduled run. */
export function fieldsText(fields: Record<string, unknown>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}

/** `3 sales`; the plural is with s. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** `3,000 sales`: for numbers that may be large. */
export function many(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}

/** How many there are, and their amounts together. */
interface Sum {
  count: number
  amount: Paisa
}

export function sumText({ count, amount }: Sum): string {
  return count === 0 ? 'none' : `${count.toLocaleString('en')} (${displayMoney(amount)})`
}
