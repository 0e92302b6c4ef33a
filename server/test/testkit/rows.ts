import { type Selectable, sql } from 'kysely'
import type { Queries } from '../../platform/database/database.ts'
import type { Schema } from '../../platform/database/schema.ts'

/** A platform, a test database, or anything else with a database to read. */
interface Readable {
  database: { reader: Queries }
}

type Row<Table extends keyof Schema> = Selectable<Schema[Table]>

/** The rows of a table that have these values (`null` too), by `order`. */
export async function rowsOf<Table extends keyof Schema>(
  { database }: Readable,
  table: Table,
  where: Partial<Row<Table>> = {},
  order = 'id',
): Promise<Row<Table>[]> {
  const conditions = Object.entries(where).map(([column, value]) =>
    value === null ? sql`${sql.ref(column)} is null` : sql`${sql.ref(column)} = ${value}`,
  )
  const { rows } = await sql<Row<Table>>`select * from ${sql.table(table)}
    where ${sql.join([sql`true`, ...conditions], sql` and `)} order by ${sql.ref(order)}`.execute(
    database.reader,
  )
  return rows
}

/** The same with these columns only. */
export async function columnsOf<Table extends keyof Schema, Column extends keyof Row<Table>>(
  readable: Readable,
  table: Table,
  columns: readonly Column[],
  where: Partial<Row<Table>> = {},
  order = 'id',
): Promise<Pick<Row<Table>, Column>[]> {
  const rows = await rowsOf(readable, table, where, order)
  return rows.map(
    (row) => Object.fromEntries(columns.map((column) => [column, row[column]])) as Pick<Row<Table>, Column>,
  )
}

/** The first row that has these values. Throws if there is none. */
export async function rowOf<Table extends keyof Schema>(
  readable: Readable,
  table: Table,
  where: Partial<Row<Table>> = {},
  order = 'id',
): Promise<Row<Table>> {
  const [row] = await rowsOf(readable, table, where, order)
  if (!row) throw new Error(`${table} has no row with ${JSON.stringify(where)}`)
  return row
}

/** The audit entries that have these values, with `before` and `after` as objects. */
export async function auditOf(readable: Readable, where: Partial<Row<'audit_entries'>>) {
  const rows = await rowsOf(readable, 'audit_entries', where)
  return rows.map((row) => ({
    ...row,
    before: JSON.parse(row.before ?? 'null'),
    after: JSON.parse(row.after ?? 'null'),
  }))
}
