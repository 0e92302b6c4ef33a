import { CompiledQuery, type RawBuilder, sql } from 'kysely'
import { type Dialect, dialectOf, type Tx } from './database.ts'

type ColumnType = 'uuid' | 'text' | 'int' | 'bigint'

export type ColumnTypes<Row extends object> = { [Column in keyof Row & string]: ColumnType }

/**
 * Rows as a table to select from. The statement's text is the same for any number of rows, so it is prepared once: PostgreSQL gets one
 * array for each column, SQLite one JSON text. Texts must not hold a NUL; a lone surrogate becomes U+FFFD.
 */
export function valuesTable<Row extends object>(
  name: string,
  columns: ColumnTypes<Row>,
): (dialect: Dialect, rows: readonly Row[]) => RawBuilder<unknown> {
  const names = Object.keys(columns) as (keyof Row & string)[]
  const alias = sql.id(name)
  const fromJson = sql.join(
    names.map((column, place) => sql`value ->> ${sql.lit(place)} as ${sql.id(column)}`),
  )
  const columnNames = sql.join(names.map((column) => sql.id(column)))
  return (dialect, rows) => {
    if (dialect === 'sqlite')
      return sql`(select ${fromJson} from json_each(${jsonOf(names, rows)})) as ${alias}`
    const arrays = names.map(
      (column) => sql`cast(${columnOf(rows, column)} as ${sql.raw(columns[column])}[])`,
    )
    return sql`unnest(${sql.join(arrays)}) as ${alias} (${columnNames})`
  }
}

/** The parameters of a statement that SQLite's connection runs once for each row, without an `await` between two of them. */
export class ParameterRows {
  readonly rows: readonly (readonly unknown[])[]

  constructor(rows: readonly (readonly unknown[])[]) {
    this.rows = rows
  }
}

/** An insert of many rows inside a transaction. Name every column of the table. */
export function bulkInsert<Row extends object>(
  table: string,
  columns: ColumnTypes<Row>,
): (tx: Tx, rows: readonly Row[]) => Promise<void> {
  const statement = insertStatement(table, columns)
  return async (tx, rows) => {
    await tx.executeQuery(statement(dialectOf(tx), rows))
  }
}

/** An insert of many rows as one statement, for `Database.executeBatch`. */
export function insertStatement<Row extends object>(
  table: string,
  columns: ColumnTypes<Row>,
): (dialect: Dialect, rows: readonly Row[]) => CompiledQuery {
  const names = Object.keys(columns) as (keyof Row & string)[]
  const into = `insert into ${table} (${names.join(', ')})`
  const one = `${into} values (${names.map(() => '?').join(', ')})`
  const many = `${into} select * from unnest(${names.map((name, place) => `$${place + 1}::${columns[name]}[]`).join(', ')})`
  return (dialect, rows) =>
    dialect === 'sqlite'
      ? CompiledQuery.raw(one, [new ParameterRows(rows.map((row) => names.map((name) => row[name] ?? null)))])
      : CompiledQuery.raw(
          many,
          names.map((name) => columnOf(rows, name)),
        )
}

/** `… in (these)` with one parameter for any number of values: `sql`${sql.ref('id')} ${inList(dialect, 'uuid', ids)}``. */
export function inList(
  dialect: Dialect,
  type: 'uuid' | 'text',
  values: readonly string[],
): RawBuilder<unknown> {
  return dialect === 'postgresql'
    ? sql`= any(cast(${values} as ${sql.raw(type)}[]))`
    : sql`in (select value from json_each(${JSON.stringify(values.map((value) => value.toWellFormed()))}))`
}

function columnOf<Row extends object>(rows: readonly Row[], column: keyof Row): unknown[] {
  return rows.map((row) => row[column] ?? null)
}

function jsonOf<Row extends object>(names: readonly (keyof Row)[], rows: readonly Row[]): string {
  return JSON.stringify(
    rows.map((row) =>
      names.map((name) => {
        const value: unknown = row[name]
        return typeof value === 'string' ? value.toWellFormed() : value
      }),
    ),
  )
}
