import { randomUUID } from 'node:crypto'
import { createReadStream, openSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Output } from './output.ts'
import { jsonText, printLines } from './printable-text.ts'
import type { ListShape } from './table.ts'

/** Rows of a table that are laid out together: enough for even columns, few enough for any memory. */
const ROWS_AT_ONCE = 500

/**
 * A list of any length beside what is said before and after it, which takes no memory: one JSON document with `--json`,
 * which goes out whole at the end, else lines and a table, as they come.
 */
export class GrowingOutput<Item> {
  readonly #out: Output
  readonly #shape: ListShape<Item>
  readonly #items: Item[] = []
  readonly #document = new WholeText()
  #written = 0
  #tables = 0

  constructor(out: Output, shape: ListShape<Item>) {
    this.#out = out
    this.#shape = shape
  }

  begin(document: Record<string, unknown>, lines: readonly string[]): void {
    if (this.#out.json) this.#document.add(`${jsonText(document).slice(0, -1)},"items":[`)
    else this.#out.print(lines)
  }

  add(item: Item): void {
    this.#written += 1
    if (this.#out.json) {
      this.#document.add(`${this.#written === 1 ? '' : ','}${jsonText(this.#shape.wire(item))}`)
      return
    }
    this.#items.push(item)
    if (this.#items.length >= ROWS_AT_ONCE) this.#flush()
  }

  async end(document: Record<string, unknown>, lines: readonly string[]): Promise<void> {
    if (this.#out.json) {
      this.#document.add(`],${jsonText(document).slice(1)}\n`)
      return this.#document.print()
    }
    this.#flush()
    this.#out.print(lines)
  }

  #flush(): void {
    if (this.#items.length === 0) return
    this.#out.endProgress()
    const table = this.#out.table(this.#items.splice(0), this.#shape.columns)
    // On a terminal each lot has columns of its own; where no person reads it is one table.
    const titled = this.#tables === 0 || this.#out.layout.width !== null
    printLines(titled ? table : table.slice(1))
    this.#tables += 1
  }
}

/** Characters that are kept in memory at most. */
const PIECE = 1_000_000

/**
 * A text of any length that is written to stdout whole or not at all: a command that is interrupted or fails prints no partial
 * document. Text that is too long for memory is kept in an unlinked file, which the system deletes when the process ends.
 */
export class WholeText {
  #pieces: string[] = []
  #length = 0
  #file: number | null = null

  add(text: string): void {
    this.#pieces.push(text)
    this.#length += text.length
    if (this.#length >= PIECE) this.#putAside()
  }

  async print(): Promise<void> {
    if (this.#file !== null) this.#putAside()
    const whole =
      this.#file === null ? Readable.from(this.#pieces) : createReadStream('', { fd: this.#file, start: 0 })
    await pipeline(whole, process.stdout, { end: false })
  }

  #putAside(): void {
    this.#file ??= namelessFile()
    writeFileSync(this.#file, this.#pieces.join(''))
    this.#pieces = []
    this.#length = 0
  }
}

/** Created with permissions for this user only. */
function namelessFile(): number {
  const path = join(tmpdir(), `affiliate-${randomUUID()}`)
  const file = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return file
}
