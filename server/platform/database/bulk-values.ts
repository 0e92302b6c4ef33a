import { CompiledQuery, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import { type Dialect, dialectOf, type Tx } from './database.ts'

/** `json` is a text column that holds nothing but JSON, as `JSON.stringify` writes it. */
type ColumnType = 'uuid' | 'text' | 'json' | 'int' | 'bigint'

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
    const arrays = names.map((column) => {
      const parameter = columnOf(rows, column, columns[column])
      return columns[column] === 'json'
        ? sql`string_to_array(${parameter}, ${sql.lit(SEPARATOR)}, '')`
        : sql`cast(${parameter} as ${sql.raw(columns[column])}[])`
    })
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
  const arrays = names.map((name, place) =>
    columns[name] === 'json'
      ? `string_to_array($${place + 1}, '${SEPARATOR}', '')`
      : `$${place + 1}::${columns[name]}[]`,
  )
  const many = `${into} select * from unnest(${arrays.join(', ')})`
  return (dialect, rows) =>
    dialect === 'sqlite'
      ? CompiledQuery.raw(one, [new ParameterRows(rows.map((row) => names.map((name) => row[name] ?? null)))])
      : CompiledQuery.raw(
          many,
          names.map((name) => columnOf(rows, name, columns[name])),
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

/** A query's rows with ids below `before`, newest first. */
export function newestFirst<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  { before, limit }: { before: string | null; limit: number },
  id = sql.ref('id'),
) {
  const earlier = before === null ? query : query.where(sql<boolean>`${id} < ${before}`)
  return earlier.orderBy(id, 'desc').limit(limit).execute()
}

/** How many rows a query finds. */
export async function countOf<Tables, Table extends keyof Tables>(
  query: SelectQueryBuilder<Tables, Table, object>,
): Promise<number> {
  const [row] = await query.select((eb) => eb.fn.countAll<number>().as('count')).execute()
  return (row as { count: number }).count
}

/** JSON has no control characters, so its texts need no escaping between these, which would cost more than the insert. */
const SEPARATOR = '\u001e'

function columnOf<Row extends object>(
  rows: readonly Row[],
  column: keyof Row,
  type: ColumnType,
): unknown[] | string {
  const values = rows.map((row) => row[column] ?? null)
  return type === 'json' ? values.join(SEPARATOR) : values
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
