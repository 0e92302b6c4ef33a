import type { Output } from './output.ts'
import { jsonText, printLines } from './printable-text.ts'
import type { RowColumn } from './table.ts'
import { WholeText } from './whole-text.ts'

/** Rows of a table that are laid out together: enough for even columns, few enough for any memory. */
const ROWS_AT_ONCE = 500

/**
 * A list of any length beside what is said before and after it, which takes no memory: one JSON document with `--json`,
 * which goes out whole at the end, else lines and a table, as they come.
 */
export class GrowingOutput<Item> {
  readonly #out: Output
  readonly #columns: readonly RowColumn<Item>[]
  readonly #wire: (item: Item) => unknown
  readonly #items: Item[] = []
  readonly #document = new WholeText()
  #written = 0
  #tables = 0

  constructor(out: Output, shape: { columns: readonly RowColumn<Item>[]; wire: (item: Item) => unknown }) {
    this.#out = out
    this.#columns = shape.columns
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
    const table = this.#out.table(this.#items.splice(0), this.#columns)
    // On a terminal each lot has columns of its own; where no person reads it is one table.
    const titled = this.#tables === 0 || this.#out.layout.width !== null
    printLines(titled ? table : table.slice(1))
    this.#tables += 1
  }
}
