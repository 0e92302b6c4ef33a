import type { Dialect } from '../platform/database/database.ts'

/** What a row added to a table refers to: the table, and its columns by those of the row. Null in the first refers to nothing. */
interface Reference {
  to: string
  by: Record<string, string>
}

/**
 * Where the SQL of the two databases differs. Frozen with the migrations from 0.2.0 on: a later migration may add a helper, but none changes.
 * An empty text is no statement.
 */
export function ddl(dialect: Dialect) {
  const isSqlite = dialect === 'sqlite'
  const onSqlite = (text: string): string => (isSqlite ? text : '')
  const onPostgres = (text: string): string => (isSqlite ? '' : text)

  /** Refuses a change of a row, under `condition` over `old` and `new`. */
  function refuse(
    change: 'update' | 'delete' | `update of ${string}`,
    table: string,
    name: string,
    condition?: string,
    message = `this change of ${table} is refused`,
  ): string {
    const when = condition ? `when (${condition}) ` : ''
    return isSqlite
      ? `create trigger "${name}" before ${change} on "${table}" ${when}begin select raise(abort, '${message}'); end`
      : `create trigger "${name}" before ${change} on "${table}" for each row ${when}execute function refuse_change()`
  }

  const refuseTruncate = (table: string): string =>
    onPostgres(`create trigger "${table}_no_truncate" before truncate on "${table}"
      for each statement execute function refuse_change()`)

  return {
    /** The type of an id. */
    id: isSqlite ? 'text' : 'uuid',
    onSqlite,
    onPostgres,

    /** That a column holds one of these values. For a list, SQLite builds an index of it at each insert. */
    oneOf: (column: string, ...values: string[]): string =>
      isSqlite
        ? values.map((value) => `${column} = '${value}'`).join(' or ')
        : `${column} in (${values.map((value) => `'${value}'`).join(', ')})`,

    unique: (table: string, name: string, columns: string): string =>
      isSqlite
        ? `create unique index "${name}" on "${table}" (${columns})`
        : `alter table "${table}" add constraint "${name}" unique (${columns})`,

    refuse,

    neverDeleted: (table: string): string[] => [
      refuse('delete', table, `${table}_refuse_delete`, undefined, `rows of ${table} never go`),
      refuseTruncate(table),
    ],

    /** With `columns`, which are all but `row_digest`, the digest may be made again with another APP_KEY. */
    onlyAdded(table: string, columns?: readonly string[]): string[] {
      const message = `rows of ${table} are only ever added`
      const update = columns
        ? (`update of ${columns.map((column) => `"${column}"`).join(', ')}` as const)
        : 'update'
      if (isSqlite) {
        return [
          refuse(update, table, `${table}_refuse_update`, undefined, message),
          refuse('delete', table, `${table}_refuse_delete`, undefined, message),
        ]
      }
      return [
        `create trigger "${table}_append_only" before ${update} or delete on "${table}"
          for each row execute function refuse_change()`,
        refuseTruncate(table),
      ]
    },

    /**
     * On PostgreSQL, foreign keys that are checked once a statement, without a lock on the rows referred to: these never go or change
     * their keys. On SQLite, the columns declare them.
     */
    references(table: string, references: Reference[]): string[] {
      const checks = references.map(({ to, by }) => {
        const columns = Object.keys(by)
        const same = Object.entries(by).map(([column, key]) => `found.${key} = given.${column}`)
        return `
          if exists (
            select from (select distinct ${columns.join(', ')} from added where ${columns[0]} is not null) as given
            where not exists (select from ${to} as found where ${same.join(' and ')})
          ) then
            raise exception 'rows added to ${table} refer to nothing in ${to}' using errcode = 'foreign_key_violation';
          end if;`
      })
      // A connection keeps its plan: one made while a table was small must not read all of it later.
      return [
        onPostgres(`create function refuse_lost_${table}() returns trigger language plpgsql
          set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
          as $$ begin ${checks.join('')} return null; end $$`),
        onPostgres(`create trigger "${table}_refer" after insert on "${table}"
          referencing new table as added for each statement execute function refuse_lost_${table}()`),
      ]
    },
  }
}

export type Ddl = ReturnType<typeof ddl>
