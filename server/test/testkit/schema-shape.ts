import { sql } from 'kysely'
import type { OpenDatabase } from '../../platform/database/open-database.ts'

/**
 * What a schema is made of, one line a column, index, constraint and key, sorted: two databases of one dialect can be
 * compared. The order of columns does not count, triggers, the migrator's own table and the parts of a table are left out.
 */
export async function schemaShape(database: OpenDatabase): Promise<string[]> {
  const lines = await (database.dialect === 'sqlite' ? sqliteShape : postgresShape)(database)
  return lines.filter((line) => !line.startsWith('mikro_orm_migrations')).sort()
}

interface MasterRow {
  type: string
  name: string
  tbl_name: string
  sql: string | null
}

async function sqliteShape(database: OpenDatabase): Promise<string[]> {
  const { rows } = await sql<MasterRow>`select type, name, tbl_name, sql from sqlite_master
    where name not like 'sqlite_sequence'`.execute(database.reader)
  const tables = rows.filter((row) => row.type === 'table')
  const indexes = rows.filter((row) => row.type === 'index' && row.sql !== null)
  const perTable = await Promise.all(tables.map((table) => sqliteTableShape(database, table)))
  return [
    ...perTable.flat(),
    ...indexes.map((index) => `${index.tbl_name} index ${plainSql(index.sql ?? '')}`),
  ]
}

async function sqliteTableShape(database: OpenDatabase, table: MasterRow): Promise<string[]> {
  const ask = async (what: string) =>
    (
      await sql<Record<string, unknown>>`pragma ${sql.raw(what)}(${sql.raw(table.name)})`.execute(
        database.reader,
      )
    ).rows
  const columns = (await ask('table_info')).map(
    ({ name, type, notnull, dflt_value, pk }) =>
      `column ${name} ${String(type).toLowerCase()} notnull=${notnull} default=${dflt_value} key=${pk}`,
  )
  const keys = (await ask('foreign_key_list')).map(
    (key) =>
      `foreign key ${key.from} -> ${key.table}.${key.to} on update ${key.on_update} on delete ${key.on_delete}`,
  )
  return [...columns, ...keys, ...checksIn(plainSql(table.sql ?? ''))].map((line) => `${table.name} ${line}`)
}

/** The named checks of a `create table`, each with its condition. */
function checksIn(text: string): string[] {
  return [...text.matchAll(/constraint (\S+) check ?\(/g)].map((match) => {
    const start = match.index + match[0].length
    let depth = 1
    let end = start
    for (; depth > 0 && end < text.length; end += 1) {
      if (text[end] === '(') depth += 1
      if (text[end] === ')') depth -= 1
    }
    return `check ${match[1]} ${asList(text.slice(start, end - 1))}`
  })
}

/** Where a table is written to so often that SQLite is spared the list, its words stand one by one: the same condition. */
function asList(condition: string): string {
  const parts = condition.split(' or ').map((part) => /^(\w+) = ('\w+')$/.exec(part))
  const columns = new Set(parts.map((part) => part?.[1]))
  if (parts.length === 1 || columns.size !== 1 || columns.has(undefined)) return condition
  return `${[...columns]} in (${parts.map((part) => part?.[2]).join(', ')})`
}

/** Without the quotes of names and the layout, which mean nothing. */
function plainSql(text: string): string {
  return text.replace(/["`]/g, '').replace(/\s+/g, ' ').toLowerCase()
}

async function postgresShape(database: OpenDatabase): Promise<string[]> {
  const { rows } = await sql<{ line: string }>`
    select format('%s column %s %s notnull=%s default=%s', relname, attname, format_type(atttypid, atttypmod),
      attnotnull, pg_get_expr(adbin, adrelid)) as line
    from pg_attribute join pg_class on pg_class.oid = attrelid
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where relnamespace = 'public'::regnamespace and relkind = 'r'
      and attnum > 0 and not attisdropped
    union all
    select format('%s constraint %s %s', conrelid::regclass, conname, pg_get_constraintdef(pg_constraint.oid))
    from pg_constraint join pg_class on pg_class.oid = conrelid
    where connamespace = 'public'::regnamespace and contype <> 'n'
    union all
    select format('%s index %s', tablename, indexdef)
    from pg_indexes where schemaname = 'public'`.execute(database.reader)
  return rows.map((row) => row.line)
}
