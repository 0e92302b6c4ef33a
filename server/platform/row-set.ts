import { type RawBuilder, sql } from 'kysely'
import { binaryArray } from './binary-array.ts'
import { type Dialect, dialectOf, type Tx } from './database.ts'
import { insertRuns } from './insert-runs.ts'

/** `long`: text of kilobytes. */
type ColumnType = 'uuid' | 'text' | 'long' | 'int' | 'bigint'

export type ColumnTypes<Row extends object> = { [Column in keyof Row & string]: ColumnType }

/**
 * Rows as something to select from: the statement's text is the same however many there are, so it is built, sent and
 * prepared once; a `values` list of a batch costs more than the writing of it. PostgreSQL gets a binary array a column, which it
 * takes apart in less time than a written one, or JSON; SQLite, which has no arrays, one value of JSON. Not for such texts
 * as hold a NUL; half of a surrogate pair becomes U+FFFD.
 */
export function rowSet<Row extends object>(
  name: string,
  columns: ColumnTypes<Row>,
): (dialect: Dialect, rows: readonly Row[]) => RawBuilder<unknown> {
  const names = Object.keys(columns) as (keyof Row & string)[]
  const picked = sql.join(names.map((column, place) => sql`value ->> ${sql.lit(place)} as ${sql.id(column)}`))
  const alias = sql.id(name)
  return (dialect, rows) => {
    if (dialect === 'postgresql') return sql`${fromArrays(columns, rows)} as ${alias}`
    const values = jsonOf(rows.map((row) => names.map((column) => row[column])))
    return sql`(select ${picked} from json_each(${values})) as ${alias}`
  }
}

function fromArrays<Row extends object>(
  columns: ColumnTypes<Row>,
  rows: readonly Row[],
): RawBuilder<unknown> {
  const names = Object.keys(columns) as (keyof Row & string)[]
  const sets = names.map((column) => {
    const values = rows.map((row) => row[column])
    return columns[column] === 'long'
      ? longTexts(column, values)
      : shortValues(column, columns[column], values)
  })
  const arrays = sql.join(sets.flatMap((set) => set.arrays))
  const arrayNames = sql.join(sets.flatMap((set) => set.names.map((one) => sql.id(one))))
  const selected = sql.join(sets.map((set) => set.selected))
  return sql`(select ${selected} from unnest(${arrays}) as given (${arrayNames}))`
}

interface ColumnSet {
  names: string[]
  arrays: RawBuilder<unknown>[]
  selected: RawBuilder<unknown>
}

function shortValues(name: string, type: Exclude<ColumnType, 'long'>, values: readonly unknown[]): ColumnSet {
  return { names: [name], arrays: [arrayOf(type, values)], selected: sql.id(name) }
}

function arrayOf(type: Exclude<ColumnType, 'long'>, values: readonly unknown[]): RawBuilder<unknown> {
  const bytes = binaryArray(
    type,
    values.map((value) => value ?? null),
  )
  return sql`cast(${bytes} as ${sql.raw(type)}[])`
}

/** All of them as one run of bytes, cut by place and size: in an array each would be looked through for quotes, twice. */
function longTexts(name: string, values: readonly unknown[]): ColumnSet {
  const texts = values.map((value) => (value === null ? null : String(value)))
  const { places, sizes, end } = placesOf(
    texts.map((text) => (text === null ? null : Buffer.byteLength(text))),
  )
  const bytes = Buffer.allocUnsafe(end - 1)
  for (const [index, text] of texts.entries())
    if (text !== null) bytes.write(text, (places[index] as number) - 1)
  const [place, size] = [`${name}_place`, `${name}_size`]
  const cut = sql`substring(cast(${bytes} as bytea) from ${sql.id(place)} for ${sql.id(size)})`
  return {
    names: [place, size],
    arrays: [places, sizes].map((numbers) => arrayOf('int', numbers)),
    selected: sql`convert_from(${cut}, 'UTF8') as ${sql.id(name)}`,
  }
}

/** Where each part lies when their bytes come one behind the other: its place (from 1, as `substring` counts) and its size. */
export function placesInOneRun(parts: readonly (Buffer | null)[]) {
  return placesOf(parts.map((part) => part?.length ?? null))
}

function placesOf(sizes: (number | null)[]): { places: number[]; sizes: (number | null)[]; end: number } {
  let end = 1
  const places = sizes.map((size) => {
    const place = end
    end += size ?? 0
    return place
  })
  return { places, sizes, end }
}

/** Half of a surrogate pair, as a text that was cut in the middle has one, becomes what PostgreSQL makes of it too. */
function jsonOf(value: unknown): string {
  const json = JSON.stringify(value)
  // Only halves are written as escapes, whole pairs as they are: nearly always there is nothing to mend.
  if (!json.includes('\\ud')) return json
  return JSON.stringify(value, (_key, part) => (typeof part === 'string' ? part.toWellFormed() : part))
}

type Insert<Row> = (tx: Tx, rows: readonly Row[]) => Promise<void>

/**
 * The insert of such rows, in a transaction: it fails with the first that cannot be there, and what it has written till
 * then goes with the transaction. A column that the table gets must be named here too, or its rows would lack it.
 */
export function insertOf<Row extends object>(table: string, columns: ColumnTypes<Row>): Insert<Row> {
  const rowsOf = rowSet('new', columns)
  const names = sql.join(Object.keys(columns).map((column) => sql.id(column)))
  const runsOf = insertRuns<Row>(table, Object.keys(columns) as (keyof Row & string)[])
  return async (tx, rows) => {
    if (dialectOf(tx) === 'sqlite') {
      for (const run of runsOf(rows)) await tx.executeQuery(run)
      return
    }
    const selected = sql`select ${names} from ${rowsOf('postgresql', rows)}`
    await sql`insert into ${sql.table(table)} (${names}) ${selected}`.execute(tx)
  }
}

/**
 * `… in (these)` as one value, for lists of hundreds: the statement's text is the same however many there are. Belongs
 * behind a column: `sql`${sql.ref('id')} ${among(dialect, 'uuid', ids)}``.
 */
export function among(
  dialect: Dialect,
  type: 'uuid' | 'text',
  values: readonly string[],
): RawBuilder<unknown> {
  return dialect === 'postgresql'
    ? sql`= any(${arrayOf(type, values)})`
    : sql`in (select value from json_each(${jsonOf(values)}))`
}
