import { CompiledQuery } from 'kysely'
import type { Dialect } from './database.ts'
import type { ColumnTypes } from './row-set.ts'
import { forEachRow } from './sqlite-dialect.ts'

/**
 * The insert of such rows as `Database.writeAtOnce` takes it, for the hot paths: its text is always the same, so it is built once
 * and prepared once a connection. On PostgreSQL each column goes over as one array, which takes less of the server's time than
 * JSON; on SQLite it runs once a row. `also` stands at its end.
 */
export function insertion<Row extends object>(
  table: string,
  columns: ColumnTypes<Row>,
  also = '',
): (dialect: Dialect, rows: readonly Row[]) => CompiledQuery {
  const names = Object.keys(columns) as (keyof Row & string)[]
  const into = `insert into ${table} (${names.join(', ')})`
  const arrays = names.map((name, place) => `$${place + 1}::${columns[name]}[]`)
  const ofArrays = `${into} select * from unnest(${arrays.join(', ')}) ${also}`.trimEnd()
  const ofRow = CompiledQuery.raw(`${into} values (${names.map(() => '?').join(', ')}) ${also}`.trimEnd())
  return (dialect, rows) =>
    dialect === 'postgresql'
      ? CompiledQuery.raw(ofArrays, arraysOf(names, rows))
      : forEachRow(
          ofRow,
          rows.map((row) => names.map((name) => row[name])),
        )
}

/** One array a column. */
export function arraysOf<Row extends object>(
  names: readonly (keyof Row & string)[],
  rows: readonly Row[],
): unknown[][] {
  return names.map((name) => rows.map((row) => row[name]))
}
