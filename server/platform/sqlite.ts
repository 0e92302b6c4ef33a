import BetterSqlite from 'better-sqlite3'
import { type CompiledQuery, Kysely } from 'kysely'
import { type Database, inTurn, runAtOnce, runTransaction } from './database.ts'
import { sqliteFault } from './database-faults.ts'
import type { Schema } from './schema.ts'
import { inOneBreath, SqliteDialect } from './sqlite-dialect.ts'
import { SqliteLog } from './sqlite-log.ts'

/**
 * How long opening, and a read, waits for another process's lock, in ms. Neither meets one but for moments: in WAL
 * mode readers wait for writers only while a file is repaired after a crash.
 */
const BUSY_TIMEOUT_MS = 5000

export interface SqliteDatabase extends Database {
  readonly dialect: 'sqlite'
  readonly file: string
  /** The writing side, for migrations. */
  readonly writer: Kysely<Schema>
}

/**
 * How long a transaction waits behind others of this process, in ms. With what it then waits for another process to let
 * it begin, a caller hears within five seconds.
 */
const TURN_PATIENCE_MS = 4000

/**
 * Opens an SQLite file with two handles: one writer (every transaction of the process, one after the other) and one
 * reader. WAL with `synchronous=FULL`: what was answered is on disk even when the power goes. With `readOnly` neither can write.
 */
export function openSqlite(file: string, options: { create: boolean; readOnly?: boolean }): SqliteDatabase {
  const log = new SqliteLog(file)
  const open = () => {
    const handle = new BetterSqlite(file, { fileMustExist: !options.create, timeout: BUSY_TIMEOUT_MS })
    const mode = handle.pragma('journal_mode = WAL', { simple: true })
    if (mode !== 'wal') throw new Error(`${file} cannot be used in WAL mode, but only in mode ${mode}`)
    handle.pragma('synchronous = FULL')
    handle.pragma('foreign_keys = ON')
    // The dialect waits for the write lock itself, without holding up the process.
    handle.pragma('busy_timeout = 0')
    log.follow(handle)
    return handle
  }
  const openReader = () => {
    const handle = new BetterSqlite(file, {
      fileMustExist: !options.create,
      timeout: BUSY_TIMEOUT_MS,
      readonly: options.readOnly ?? false,
    })
    handle.pragma('query_only = ON')
    return handle
  }
  const writing = new SqliteDialect(options.readOnly ? openReader : open)
  const writer = new Kysely<Schema>({ dialect: writing })
  const reader = new Kysely<Schema>({ dialect: new SqliteDialect(openReader) })
  const inItsTurn = (transaction: CompiledQuery) => {
    const giveUpAt = performance.now() + TURN_PATIENCE_MS
    const ask = () => inTurn(writer, giveUpAt, (connection) => connection.executeQuery(transaction))
    return runAtOnce(writer, sqliteFault, ask)
  }
  return {
    dialect: 'sqlite',
    file,
    writer,
    reader,
    async transaction(work) {
      const result = await runTransaction(writer, sqliteFault, work, TURN_PATIENCE_MS)
      log.written({ hot: false })
      return result
    },
    async writeAtOnce<Row>(...statements: CompiledQuery[]) {
      const rows = (writing.atOnce(statements) ?? (await inItsTurn(inOneBreath(statements)))) as Row[]
      log.written({ hot: true })
      return rows
    },
    faultOf: sqliteFault,
    async close() {
      await reader.destroy()
      await log.close()
      await writer.destroy()
    },
  }
}
