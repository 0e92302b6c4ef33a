import { type RawBuilder, sql } from 'kysely'
import { type Dialect, dialectOf, type Tx } from './database.ts'
import { forEachRow } from './sqlite-dialect.ts'

export type ColumnTypes<Row extends object> = {
  [Column in keyof Row & string]: 'uuid' | 'text' | 'int' | 'bigint'
}

/**
 * Rows as something to select from, handed over as one value of JSON: the statement's text is the same however many
 * there are, so it is built, sent and prepared once; a `values` list of a batch costs more than the writing of it. The
 * same on both databases. Not for texts of kilobytes, nor for such as hold a NUL; half of a surrogate pair becomes U+FFFD.
 */
export function rowSet<Row extends object>(
  name: string,
  columns: ColumnTypes<Row>,
): (dialect: Dialect, rows: readonly Row[]) => RawBuilder<unknown> {
  const names = Object.keys(columns) as (keyof Row & string)[]
  const typed = sql.join(names.map((column) => sql`${sql.id(column)} ${sql.raw(columns[column])}`))
  const picked = sql.join(names.map((column, place) => sql`value ->> ${sql.lit(place)} as ${sql.id(column)}`))
  const alias = sql.id(name)
  return (dialect, rows) => {
    if (dialect === 'postgresql') {
      return sql`json_to_recordset(cast(${jsonOf(rows)} as json)) as ${alias} (${typed})`
    }
    const values = jsonOf(rows.map((row) => names.map((column) => row[column])))
    return sql`(select ${picked} from json_each(${values})) as ${alias}`
  }
}

/** PostgreSQL's JSON takes no half of a surrogate pair, as a text that was cut in the middle has one. */
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
  const each = insertEach<Row>(table, Object.keys(columns) as (keyof Row & string)[])
  return async (tx, rows) => {
    if (dialectOf(tx) === 'sqlite') return each(tx, rows)
    const selected = sql`select ${names} from ${rowsOf('postgresql', rows)}`
    await sql`insert into ${sql.table(table)} (${names}) ${selected}`.execute(tx)
  }
}

/** SQLite only, which is no trip away: a prepared statement a row takes half as long as reading all rows out of one text. */
export function insertEach<Row extends object>(
  table: string,
  columns: readonly (keyof Row & string)[],
): Insert<Row> {
  const names = sql.join(columns.map((column) => sql.id(column)))
  const insert = sql`insert into ${sql.table(table)} (${names}) values (${sql.join(columns.map(() => null))})`
  return async (tx, rows) => {
    const values = rows.map((row) => columns.map((column) => row[column]))
    await tx.getExecutor().executeQuery(forEachRow(insert.compile(tx), values))
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
    ? sql`= any(cast(${values} as ${sql.raw(type)}[]))`
    : sql`in (select value from json_each(${jsonOf(values)}))`
}
