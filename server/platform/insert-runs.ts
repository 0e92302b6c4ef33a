import { CompiledQuery } from 'kysely'
import { forEachRow } from './sqlite-dialect.ts'

/**
 * Rows of one statement, the most first: a run of it costs as much as two or three rows, and where the table refers to another one
 * SQLite copies each page that a run of several rows changes, once for the run.
 */
const TOGETHER = [48, 8, 1]
/** Columns up to which a row is short: binding those of longer ones takes more than the runs. */
const SHORT = 7

/**
 * SQLite's insert of such rows in statements whose texts are always the same, so that each is prepared once a connection: half of what reading
 * all rows out of one JSON text takes. The rows that a statement wrote before the one that cannot be there stay (`or fail`), and go
 * with the transaction, which has to end: to take them back by itself it would copy each page before it changes it.
 */
export function insertRuns<Row extends object>(
  table: string,
  columns: readonly (keyof Row & string)[],
): (rows: readonly Row[]) => CompiledQuery[] {
  const into = `insert or fail into "${table}" (${columns.map((name) => `"${name}"`).join(', ')}) values`
  const row = `(${columns.map(() => '?').join(', ')})`
  const sizes = columns.length > SHORT ? [1] : TOGETHER
  const statements = sizes.map((size) => ({
    size,
    query: CompiledQuery.raw(`${into} ${Array.from({ length: size }, () => row).join(', ')}`),
  }))
  return (rows) => {
    const runs: CompiledQuery[] = []
    let done = 0
    for (const { size, query } of statements) {
      const first = done
      done += rows.length - first - ((rows.length - first) % size)
      if (done > first) runs.push(forEachRow(query, cut(columns, rows, { first, end: done, size })))
    }
    return runs
  }
}

interface Part {
  first: number
  end: number
  size: number
}

/** The rows' values by runs, one behind the other; a list for each row on the way would cost as much again. */
function cut<Row extends object>(
  columns: readonly (keyof Row & string)[],
  rows: readonly Row[],
  { first, end, size }: Part,
): unknown[][] {
  const runs: unknown[][] = []
  for (let start = first; start < end; start += size) {
    const values: unknown[] = []
    for (let place = start; place < start + size; place += 1) {
      const row = rows[place] as Row
      for (const name of columns) values.push(row[name])
    }
    runs.push(values)
  }
  return runs
}
