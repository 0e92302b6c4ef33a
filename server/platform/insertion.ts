import { CompiledQuery } from 'kysely'
import type { Dialect } from './database.ts'
import { arrayText, type ColumnTypes } from './row-set.ts'
import { forEachRow } from './sqlite-dialect.ts'

/** Rows of one statement on SQLite: a run of it costs as much as two or three rows. */
const ROWS = 8

/**
 * The insert of such rows as `Database.writeAtOnce` takes it, for the hot paths: its texts are always the same, so they are built once
 * and prepared once a connection. On PostgreSQL each column goes over as one array, which takes less of the server's time than
 * JSON; on SQLite it runs once for eight rows, and once for each of the rest.
 */
export function insertion<Row extends object>(
  table: string,
  columns: { [Column in keyof Row & string]: Exclude<ColumnTypes<Row>[Column], 'long'> },
): (dialect: Dialect, rows: readonly Row[]) => CompiledQuery[] {
  const names = Object.keys(columns) as (keyof Row & string)[]
  const into = `insert into ${table} (${names.join(', ')})`
  const arrays = names.map((name, place) => `$${place + 1}::${columns[name]}[]`)
  const ofArrays = `${into} select * from unnest(${arrays.join(', ')})`
  const values = `(${names.map(() => '?').join(', ')})`
  const ofRow = CompiledQuery.raw(`${into} values ${values}`)
  const ofRows = CompiledQuery.raw(`${into} values ${Array.from({ length: ROWS }, () => values).join(', ')}`)
  return (dialect, rows) => {
    if (dialect === 'postgresql') return [CompiledQuery.raw(ofArrays, arraysOf(names, rows))]
    const together: unknown[][] = []
    const rest = rows.length - (rows.length % ROWS)
    for (let first = 0; first < rest; first += ROWS) together.push(valuesOf(names, rows, first, first + ROWS))
    const alone: unknown[][] = []
    for (let place = rest; place < rows.length; place += 1)
      alone.push(valuesOf(names, rows, place, place + 1))
    return [forEachRow(ofRows, together), forEachRow(ofRow, alone)]
  }
}

/** One after the other; a list for each row on the way would cost as much again. */
function valuesOf<Row extends object>(
  names: readonly (keyof Row & string)[],
  rows: readonly Row[],
  first: number,
  end: number,
): unknown[] {
  const values: unknown[] = []
  for (let place = first; place < end; place += 1) {
    const row = rows[place] as Row
    for (const name of names) values.push(row[name])
  }
  return values
}

/** One array a column, as PostgreSQL reads it: what the driver would write itself, with a new text for each of the values. */
export function arraysOf<Row extends object>(
  names: readonly (keyof Row & string)[],
  rows: readonly Row[],
): string[] {
  return names.map((name) => arrayText(rows.map((row) => row[name])))
}
