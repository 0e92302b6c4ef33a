import { pipeline, Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'

/** Why a bank's file cannot be read: one sentence with what to do. Nothing of it was used. */
export class UnreadableBankFile extends Error {
  override readonly name = 'UnreadableBankFile'
}

/** One row under the head. */
export interface BankRow {
  line: number
  /** The trimmed cell of a column; empty where the file has none. */
  cell(column: string): string
}

export interface BankFileColumns {
  required: readonly string[]
  optional: readonly string[]
  /** What the file calls a column, where it has another title. */
  titles: ReadonlyMap<string, string>
}

const LONGEST_ROW = 100_000
/** Statements begin with the account and its holder. */
const ROWS_BEFORE_HEAD = 50
const DELIMITERS = [',', ';', '\t', '|']
const SAVE_AGAIN = 'Save it as "CSV UTF-8".'

/**
 * Reads a CSV file of a bank as it streams in, so that a file of any size needs the same memory: UTF-8, UTF-16 with its mark, or
 * Windows-1252; cells separated by commas, semicolons, tabs or bars; lines before the head are skipped. Throws `UnreadableBankFile`.
 */
export async function* readBankFile(
  bytes: AsyncIterable<Uint8Array>,
  columns: BankFileColumns,
): AsyncGenerator<BankRow> {
  const text = decodeText(bytes)
  const first = await text.next()
  const start = first.done ? '' : first.value
  const parser = parse({
    delimiter: delimiterOf(start),
    skip_empty_lines: true,
    relax_column_count: true,
    relax_quotes: true,
    max_record_size: LONGEST_ROW,
    info: true,
  })
  async function* whole() {
    yield start
    yield* text
  }
  pipeline(Readable.from(whole()), parser, () => {
    // Reading the parser throws the error.
  })
  let places: Map<string, number> | null = null
  let before = 0
  try {
    for await (const { record, info } of parser as AsyncIterable<{
      record: string[]
      info: { lines: number }
    }>) {
      if (places === null) {
        places = placesOf(record, columns)
        before += 1
        if (places === null && before > ROWS_BEFORE_HEAD) break
        continue
      }
      const at = places
      yield { line: info.lines, cell: (column) => record[at.get(column) ?? -1]?.trim() ?? '' }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new UnreadableBankFile(`Line ${error.lines} is no CSV. ${SAVE_AGAIN}`)
  }
  if (places !== null) return
  const wanted = columns.required.map((name) => columns.titles.get(name) ?? name).join(', ')
  throw new UnreadableBankFile(
    `The file has no line with the column titles ${wanted}. Name its own titles with --columns, such as reference=Narration.`,
  )
}

/** Where the columns stand, if this is the head: titles are compared without case and spaces around. */
function placesOf(record: readonly string[], { required, optional, titles }: BankFileColumns) {
  const found = record.map((title) => title.trim().toLowerCase())
  const places = new Map<string, number>()
  for (const name of [...required, ...optional]) {
    const at = found.indexOf((titles.get(name) ?? name).toLowerCase())
    if (at >= 0) places.set(name, at)
    else if (required.includes(name) || titles.has(name)) return null
  }
  return places
}

/** The one that the first lines have most often. */
function delimiterOf(text: string): string {
  const lines = text.slice(0, 10_000)
  const [most = ','] = DELIMITERS.toSorted((a, b) => lines.split(b).length - lines.split(a).length)
  return most
}

async function* decodeText(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let decoder: InstanceType<typeof TextDecoder> | null = null
  for await (const chunk of bytes) {
    decoder ??= new TextDecoder(encodingOf(chunk))
    const text = decoder.decode(chunk, { stream: true })
    if (text.includes('\0')) throw new UnreadableBankFile(`The file is no text. ${SAVE_AGAIN}`)
    yield text
  }
  yield decoder?.decode() ?? ''
}

/** By the mark at the start, or by what the first bytes can be. */
function encodingOf(chunk: Uint8Array): string {
  const [first = 0, second = 0] = chunk
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  if (first === 0xfe && second === 0xff) return 'utf-16be'
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(chunk, { stream: true })
    return 'utf-8'
  } catch {
    return 'windows-1252'
  }
}
