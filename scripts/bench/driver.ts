import BetterSqlite from 'better-sqlite3'
import { Pool, types } from 'pg'
import { sqliteFileOf } from '../../server/platform/config.ts'

/** The database through its driver only, as in a hand-written peer. */
export interface Driver {
  /** With `?` for each value. */
  all<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>
  close(): Promise<void>
}

const INT8 = 20
const NUMERIC = 1700

export function openDriver(url: string): Driver {
  const file = sqliteFileOf(url)
  return file === null ? overPg(url) : overSqlite(file)
}

function overSqlite(file: string): Driver {
  const database = new BetterSqlite(file, { fileMustExist: true })
  const statements = new Map<string, BetterSqlite.Statement>()
  return {
    async all<Row>(text: string, values: readonly unknown[] = []) {
      const statement = statements.get(text) ?? database.prepare(text)
      statements.set(text, statement)
      return statement.all(...values) as Row[]
    },
    async close() {
      database.close()
    },
  }
}

function overPg(url: string): Driver {
  const getTypeParser = (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 || oid === NUMERIC ? Number : types.getTypeParser(oid, format as 'text')
  const pool = new Pool({
    connectionString: url,
    types: { getTypeParser: getTypeParser as typeof types.getTypeParser },
  })
  const names = new Map<string, { name: string; text: string }>()
  const prepared = (text: string) => {
    const [start = '', ...rest] = text.split('?')
    const known = names.get(text) ?? {
      name: `peer${names.size}`,
      text: start + rest.map((part, index) => `$${index + 1}${part}`).join(''),
    }
    names.set(text, known)
    return known
  }
  return {
    async all<Row>(text: string, values: readonly unknown[] = []) {
      return (await pool.query({ ...prepared(text), values: [...values] })).rows as Row[]
    },
    close: () => pool.end(),
  }
}
