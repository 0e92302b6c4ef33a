import type { Output } from './output.ts'
import { jsonText, printLines } from './printable-text.ts'
import type { Column } from './table.ts'
import { WholeText } from './whole-text.ts'

/** Rows of a table that are laid out together: enough for even columns, few enough for any memory. */
const ROWS_AT_ONCE = 500

/**
 * A list of any length beside what is said before and after it, which takes no memory: one JSON document with `--json`,
 * which goes out whole at the end, else lines and a table, as they come.
 */
export class GrowingOutput<Item> {
  readonly #out: Output
  readonly #columns: readonly Column[]
  readonly #row: (item: Item) => readonly string[]
  readonly #wire: (item: Item) => unknown
  readonly #rows: (readonly string[])[] = []
  readonly #document = new WholeText()
  #written = 0
  #tables = 0

  constructor(
    out: Output,
    shape: {
      columns: readonly Column[]
      row: (item: Item) => readonly string[]
      wire: (item: Item) => unknown
    },
  ) {
    this.#out = out
    this.#columns = shape.columns
    this.#row = shape.row
    this.#wire = shape.wire
  }

  begin(document: Record<string, unknown>, lines: readonly string[]): void {
    if (this.#out.json) this.#document.add(`${jsonText(document).slice(0, -1)},"items":[`)
    else this.#out.print(lines)
  }

  add(item: Item): void {
    this.#written += 1
    if (this.#out.json) {
      this.#document.add(`${this.#written === 1 ? '' : ','}${jsonText(this.#wire(item))}`)
      return
    }
    this.#rows.push(this.#row(item))
    if (this.#rows.length >= ROWS_AT_ONCE) this.#flush()
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
    if (this.#rows.length === 0) return
    this.#out.endProgress()
    const table = this.#out.table(this.#columns, this.#rows.splice(0))
    // On a terminal each lot has columns of its own; where no person reads it is one table.
    const titled = this.#tables === 0 || this.#out.layout.width !== null
    printLines(titled ? table : table.slice(1))
    this.#tables += 1
  }
}
