import { CompiledQuery } from 'kysely'
import { type ArrayType, binaryArray } from './binary-array.ts'
import type { Dialect } from './database.ts'
import { insertRuns } from './insert-runs.ts'
import type { ColumnTypes } from './row-set.ts'

/**
 * The insert of such rows as `Database.writeAtOnce` takes it, for the hot paths: its texts are always the same, so they are built once
 * and prepared once a connection. On PostgreSQL each column goes over as one array, which takes less of the server's time than
 * JSON; on SQLite see `insertRuns`.
 */
export function insertion<Row extends object>(
  table: string,
  columns: { [Column in keyof Row & string]: Exclude<ColumnTypes<Row>[Column], 'long'> },
): (dialect: Dialect, rows: readonly Row[]) => CompiledQuery[] {
  const names = Object.keys(columns) as (keyof Row & string)[]
  const arrays = names.map((name, place) => `$${place + 1}::${columns[name]}[]`)
  const ofArrays = `insert into ${table} (${names.join(', ')}) select * from unnest(${arrays.join(', ')})`
  const runsOf = insertRuns<Row>(table, names)
  return (dialect, rows) => {
    if (dialect === 'postgresql') return [CompiledQuery.raw(ofArrays, arraysOf(columns, rows))]
    return runsOf(rows)
  }
}

/** One array a column, in the order of `columns`. */
export function arraysOf<Row extends object, Name extends keyof Row & string>(
  columns: Record<Name, ArrayType>,
  rows: readonly Row[],
): Buffer[] {
  return (Object.keys(columns) as Name[]).map((name) => {
    const values = rows.map((row) => row[name])
    return binaryArray(columns[name], values)
  })
}
