import { pipeline, Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { type Paisa, parseMoney } from '../../shared/money.ts'

/** An order of Shopify's order export (`orders_export.csv`). Amounts in hundredths of `currency`, times in epoch ms. */
export interface ExportedOrder {
  /** `null` in exports without ids. */
  id: string | null
  name: string
  financial_status: string
  currency: string
  created_at: number | null
  paid_at: number | null
  cancelled: boolean
  /** After discounts, before shipping; `null` if it cannot be read. */
  subtotal: Paisa | null
}

/** Why a file is no order export: one sentence with what to do. */
export class UnreadableExport extends Error {
  override readonly name = 'UnreadableExport'
}

const COLUMNS = ['Name', 'Financial Status', 'Currency', 'Subtotal', 'Created at', 'Id'] as const
/** Exports of all times have them; where one is missing, nothing is known of it. */
const OPTIONAL = ['Paid at', 'Cancelled at'] as const
type Column = (typeof COLUMNS)[number] | (typeof OPTIONAL)[number]

const EXPORT_AGAIN = 'Export the orders again: Shopify admin, Orders, Export, "Plain CSV file".'

/** A row of an order holds names, addresses and notes; a longer one is no row. */
const LONGEST_ROW = 1_000_000

/**
 * Reads an order export as it streams in, so that a file of any size needs the same memory. An order with several lines spans several
 * rows; only the first has the order's own fields. Throws `UnreadableExport`.
 */
export async function* readOrderExport(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ExportedOrder> {
  const parser = parse({ skip_empty_lines: true, max_record_size: LONGEST_ROW })
  pipeline(Readable.from(decodeText(bytes)), parser, () => {
    // Reading the parser throws the error.
  })
  let places: Map<Column, number> | undefined
  let name = ''
  try {
    for await (const cells of parser as AsyncIterable<string[]>) {
      if (!places) {
        places = placesOf(cells)
        continue
      }
      const cell = cellReader(cells, places)
      // Two exports in one file have two heads.
      const isHead = cell('Name') === 'Name' && cell('Id') === 'Id'
      const isFurtherLine = cell('Name') === name && cell('Financial Status') === '' && cell('Id') === ''
      if (isHead || isFurtherLine) continue
      name = cell('Name')
      yield orderIn(cell)
    }
  } catch (error) {
    throw error instanceof CsvError ? brokenRow(error) : error
  }
  if (!places) throw new UnreadableExport(`The file is empty. ${EXPORT_AGAIN}`)
}

/** Decodes UTF-8, with or without a byte order mark. Throws `UnreadableExport` for another encoding. */
async function* decodeText(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let isFirst = true
  try {
    for await (const chunk of bytes) {
      if (isFirst) refuseOtherEncodings(chunk)
      isFirst = false
      yield decoder.decode(chunk, { stream: true })
    }
    yield decoder.decode()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
    throw new UnreadableExport(`The file is not encoded in UTF-8. ${EXPORT_AGAIN}`)
  }
}

function refuseOtherEncodings(chunk: Uint8Array): void {
  const [first = 0, second = 0] = chunk
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    throw new UnreadableExport(`The file is encoded in UTF-16. ${EXPORT_AGAIN}`)
  }
  if (chunk.includes(0)) throw new UnreadableExport(`The file is no text. ${EXPORT_AGAIN}`)
}

function placesOf(head: readonly string[]): Map<Column, number> {
  const titles = head.map((title) => title.trim())
  const missing = COLUMNS.filter((column) => !titles.includes(column))
  if (missing.length > 0 && titles.some((title) => title.split(/[;\t]/).length > 3)) {
    throw new UnreadableExport(
      `The file is separated by semicolons or tabs, as a spreadsheet program saves it. ${EXPORT_AGAIN}`,
    )
  }
  if (missing.length > 0) {
    throw new UnreadableExport(
      `This is no order export: columns are missing: ${missing.join(', ')}. ${EXPORT_AGAIN}`,
    )
  }
  return new Map([...COLUMNS, ...OPTIONAL].map((column) => [column, titles.indexOf(column)]))
}

type CellReader = (column: Column) => string

function cellReader(cells: readonly string[], places: ReadonlyMap<Column, number>): CellReader {
  return (column) => cells[places.get(column) ?? -1]?.trim() ?? ''
}

function orderIn(cell: CellReader): ExportedOrder {
  const id = cell('Id')
  const name = cell('Name')
  if (id !== '' && !/^\d{1,20}$/.test(id)) {
    throw new UnreadableExport(
      `The Id of order ${name.slice(0, 40)} is no whole number: a spreadsheet program has saved this file. ${EXPORT_AGAIN}`,
    )
  }
  return {
    id: id === '' ? null : id,
    name,
    financial_status: cell('Financial Status').toLowerCase(),
    currency: cell('Currency'),
    created_at: timeIn(cell('Created at')),
    paid_at: timeIn(cell('Paid at')),
    cancelled: cell('Cancelled at') !== '',
    subtotal: parseMoney(cell('Subtotal')),
  }
}

/** `2026-11-20 17:30:00 +0500` */
function timeIn(text: string): number | null {
  const time = /^\d{4}-\d{2}-\d{2} /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? null : time
}

function brokenRow({ code, lines }: CsvError): UnreadableExport {
  const what =
    code === 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH'
      ? 'has another number of cells than the first line'
      : code === 'CSV_MAX_RECORD_SIZE'
        ? 'is too long'
        : 'is no CSV'
  return new UnreadableExport(`Line ${lines} ${what}. ${EXPORT_AGAIN}`)
}
