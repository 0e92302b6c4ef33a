import { type RawBuilder, sql } from 'kysely'
import { openFlags } from '../../flags/flags.service.ts'
import type { OpenDatabase } from '../../platform/database/open-database.ts'
import type { Digested } from '../../platform/database/protected-tables.ts'
import type { Platform } from '../../platform/platform.ts'
import { eventually } from './eventually.ts'

/** Makes the database refuse the sale of one order, as an unknown bug would. */
export async function poisonOrder(database: OpenDatabase, orderName: string): Promise<void> {
  const is = sql`new.order_name = ${sql.lit(orderName)}`
  await database.transaction(async (tx) => {
    if (database.dialect === 'sqlite') {
      await sql`create trigger poison before insert on sales when ${is}
        begin select raise(abort, 'poisoned'); end`.execute(tx)
      return
    }
    await sql`create function poison() returns trigger language plpgsql as
      'begin raise exception ''poisoned''; end'`.execute(tx)
    await sql`create trigger poison before insert on sales for each row when (${is})
      execute function poison()`.execute(tx)
  })
}

/** Takes away the triggers, as an owner of the tables can; the service works on. */
export async function removeTriggers({ dialect, writer }: OpenDatabase): Promise<void> {
  const triggers = await (dialect === 'sqlite'
    ? sql<{ name: string; of: string }>`
        select name, tbl_name as "of" from sqlite_schema where type = 'trigger'`
    : sql<{ name: string; of: string }>`
        select tgname as name, tgrelid::regclass::text as "of" from pg_trigger where not tgisinternal and tgparentid = 0`
  ).execute(writer)
  for (const { name, of } of triggers.rows) {
    const on = dialect === 'sqlite' ? sql`` : sql` on ${sql.id(of)}`
    await sql`drop trigger ${sql.id(name)}${on}`.execute(writer)
  }
}

/**
 * Takes away what the database itself guards (triggers, unique indexes beside primary keys, checks, foreign keys), so
 * that a test can write what no service could.
 */
export function removeGuards(database: OpenDatabase): Promise<void> {
  return database.dialect === 'sqlite' ? removeSqliteGuards(database) : removePostgresGuards(database)
}

async function removeSqliteGuards(database: OpenDatabase): Promise<void> {
  const { writer } = database
  await sql`pragma foreign_keys = off`.execute(writer)
  await sql`pragma ignore_check_constraints = on`.execute(writer)
  const guards = await sql<{ type: string; name: string }>`
    select type, name from sqlite_schema
    where type = 'trigger' or (type = 'index' and sql like 'create unique%')`.execute(writer)
  for (const { type, name } of guards.rows) await sql`drop ${sql.raw(type)} ${sql.id(name)}`.execute(writer)
}

/** Foreign keys first: the others may be what they refer to. */
async function removePostgresGuards({ writer }: OpenDatabase): Promise<void> {
  const { rows } = await sql<{ statement: string }>`
    select case contype when 'f' then 1 else 2 end as place,
      format('alter table %s drop constraint %I', conrelid::regclass, conname) as statement
    from pg_constraint where contype in ('f', 'u', 'c') and connamespace = 'public'::regnamespace and conparentid = 0
    union all
    select 3, format('drop index if exists %I', indexname) from pg_indexes
    where schemaname = 'public' and indexdef like 'CREATE UNIQUE%' and indexname not like '%_pkey'
    union all
    select 4, format('alter table %I disable trigger user', tablename) from pg_tables where schemaname = 'public'
    order by place`.execute(writer)
  for (const { statement } of rows) await sql.raw(statement).execute(writer)
}

/** Statements of a database writer without APP_KEY, who has removed the triggers. */
export async function writeWithoutKey(
  database: OpenDatabase,
  ...statements: (string | RawBuilder<unknown>)[]
): Promise<void> {
  await removeTriggers(database)
  for (const statement of statements)
    await (typeof statement === 'string' ? sql.raw(statement) : statement).execute(database.writer)
}

/** Waits for the one flag about forged rows of a table. */
export function assertForgeryFlagged({ database }: Platform, table: Digested): Promise<unknown> {
  return eventually(
    () => openFlags(database.reader, 'integrity_violation', table),
    ({ length }) => length === 1,
  )
}
