import { type RawBuilder, sql } from 'kysely'
import type { Dialect } from './database.ts'

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

/** The insert of such rows. A column that the table gets must be named here too, or its rows would lack it. */
export function insertOf<Row extends object>(
  table: string,
  columns: ColumnTypes<Row>,
): (dialect: Dialect, rows: readonly Row[]) => RawBuilder<unknown> {
  const rowsOf = rowSet('new', columns)
  const names = sql.join(Object.keys(columns).map((column) => sql.id(column)))
  return (dialect, rows) =>
    sql`insert into ${sql.table(table)} (${names}) select ${names} from ${rowsOf(dialect, rows)}`
}
