import { type EntityName, MikroORM } from '@mikro-orm/core'
import { PostgreSqlDriver } from '@mikro-orm/postgresql'
import { SqliteDriver } from '@mikro-orm/sqlite'
import { type RawBuilder, sql } from 'kysely'
import { type Database, dialectOf, type Queries, type Tx } from '../../platform/database/database.ts'
import type { Schema } from '../../platform/database/schema.ts'
import { ENTITIES } from '../../schema.ts'
import type { Invariant } from '../../verification/invariant.ts'
import { EVERYTHING } from '../../verification/scope.ts'
import { type Books, INVARIANTS } from '../../verification/verify-books.ts'
import { onStatement } from './statements.ts'
import { NO_USER } from './tamperings.ts'

/** What a database writer can do to a table: change a column, add a copy of a row, delete a row. */
export interface Forgery {
  table: keyof Schema
  /** A column, `added rows` or `deleted rows`. */
  what: string
  statement: RawBuilder<unknown>
}

type Row = Readonly<Record<string, unknown>>

const SOME_TIME = 1_700_000_000_000

/** For every column of every entity, and for every table, what a writer can do to each of its rows, or to the first `most`. */
export async function everyForgery(db: Queries, most = Infinity): Promise<Forgery[]> {
  const forgeries: Forgery[] = []
  const driver = dialectOf(db) === 'sqlite' ? SqliteDriver : PostgreSqlDriver
  const options = { driver, dbName: 'metadata', entities: ENTITIES, logger: () => {} }
  const orm = new MikroORM<SqliteDriver | PostgreSqlDriver>(options)
  for (const entity of ENTITIES) {
    const { tableName, props } = orm.getMetadata().get(entity as EntityName<object>)
    const table = tableName as keyof Schema
    const columns = props.flatMap(({ fieldNames }) => fieldNames)
    const types = Object.fromEntries(
      props.flatMap(({ fieldNames, columnTypes }) =>
        fieldNames.map((column, index) => [column, columnTypes[index]]),
      ),
    )
    const key = props.filter(({ primary }) => primary).flatMap(({ fieldNames }) => fieldNames)
    const order = sql.join(key.map((column) => sql.ref(column)))
    const { rows } = await sql<Row>`select * from ${sql.table(table)} order by ${order}`.execute(db)
    for (const row of rows.slice(0, most)) {
      const isRow = sql.join(
        key.map((column) => sql`${sql.ref(column)} = ${row[column]}`),
        sql` and `,
      )
      for (const column of columns) {
        const value =
          otherValue(rows, row, column, key.includes(column)) ?? firstValueOf(column, types[column])
        const statement = sql`update ${sql.table(table)} set ${sql.ref(column)} = ${value} where ${isRow}`
        forgeries.push({ table, what: column, statement })
      }
      const copy = { ...row, [key.at(-1) ?? '']: otherValue(rows, row, key.at(-1) ?? '', true) }
      const added = sql`insert into ${sql.table(table)} (${sql.join(columns.map((column) => sql.ref(column)))})
        values (${sql.join(columns.map((column) => (copy as Row)[column]))})`
      forgeries.push({ table, what: 'added rows', statement: added })
      const deleted = sql`delete from ${sql.table(table)} where ${isRow}`
      forgeries.push({ table, what: 'deleted rows', statement: deleted })
    }
  }
  return forgeries
}

/** Another value of the column's type: a number one higher; else what another row has, unless it must be new; null if all rows have null. */
function otherValue(rows: readonly Row[], row: Row, column: string, isNew: boolean): unknown {
  const value = row[column]
  if (typeof value === 'number')
    return isNew ? Math.max(...rows.map((other) => Number(other[column]))) + 1 : value + 1
  const others = rows.map((other) => other[column]).filter((other) => other !== value && other !== null)
  if (!isNew && others.length > 0) return others[0]
  switch (typeof value) {
    case 'bigint':
      return value + 1n
    case 'string':
      if (/^[0-9a-f]{8}-/.test(value)) return `${value.slice(0, 24)}000000000001`
      if (value.startsWith('{')) return '{"other":1}'
      if (value.startsWith('[')) return '["other"]'
      return withOtherLetter(value)
    default:
      return null
  }
}

/** Not the last letter: of what is written in base64, a part of it counts for nothing. */
function withOtherLetter(value: string): string {
  const middle = Math.floor(value.length / 2)
  return `${value.slice(0, middle)}${value[middle] === 'a' ? 'b' : 'a'}${value.slice(middle + 1)}`
}

/** For a column that is null in every row. */
function firstValueOf(column: string, type = ''): unknown {
  if (/int/.test(type)) return /_(at|until)$/.test(column) ? SOME_TIME : 1000
  return type === 'uuid' ? NO_USER : 'other'
}

class TakeBack extends Error {}

/** Runs `work` in a transaction that is taken back. */
export async function takenBack(database: Database, work: (tx: Tx) => Promise<unknown>): Promise<void> {
  const taken = database.transaction(async (tx) => {
    await work(tx)
    throw new TakeBack()
  })
  const error = await taken.catch((thrown) => thrown)
  if (!(error instanceof TakeBack)) throw error
}

/**
 * Tries each forgery on its own, until one of its column is missed; yields it with the first invariant that it breaks,
 * `null` for none.
 */
export async function* tryForgeries(
  { database, keys }: Books,
  forgeries: readonly Forgery[],
): AsyncGenerator<{ forgery: Forgery; found: string | null }> {
  const seen = new Map<Invariant, string>()
  for (const invariant of INVARIANTS) seen.set(invariant, await queriesOf({ database, keys }, invariant))
  const missed = new Set<string>()
  /** The invariants that found the last forgery of each table: mostly they find the next one too. */
  const finders = new Map<string, Invariant>()
  for (const forgery of forgeries) {
    const name = `${forgery.table}, ${forgery.what}`
    if (missed.has(name)) continue
    let found: string | null = null
    await takenBack(database, async (tx) => {
      const { numAffectedRows } = await forgery.statement.execute(tx)
      if (!numAffectedRows) throw new Error(`${name}: nothing was changed`)
      const likely = finders.get(forgery.table)
      for (const invariant of likely ? [likely, ...seen.keys()] : seen.keys()) {
        if (!seen.get(invariant)?.includes(forgery.table)) continue
        if ((await invariant.breaches(tx, keys, EVERYTHING)).length === 0) continue
        finders.set(forgery.table, invariant)
        found = invariant.name
        return
      }
    })
    if (found === null) missed.add(name)
    yield { forgery, found }
  }
}

/** The syntax trees of all queries of an invariant, which name the tables that it can see. */
async function queriesOf({ database, keys }: Books, { breaches }: Invariant): Promise<string> {
  const queries: string[] = []
  const plugin = onStatement(({ node }) => queries.push(JSON.stringify(node)))
  await breaches(database.reader.withPlugin(plugin), keys, EVERYTHING)
  return queries.join()
}
