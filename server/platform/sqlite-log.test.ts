// database: none
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { CompiledQuery, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openSqlite, type SqliteDatabase } from './sqlite.ts'
import { checkpoint, type LogState, SqliteLog } from './sqlite-log.ts'

interface Context {
  folder: string
  file: string
  database: SqliteDatabase
  onlooker: BetterSqlite.Database
}

/** Some hundred pages. */
const ROW = CompiledQuery.raw('insert into t values (randomblob(400000))')
/** SQLite's own measure, by which no commit leaves a longer log than this and what it wrote itself. */
const OWN_MEASURE = 1000 + 200
/** Pages at which a commit folds the log in although there is a thread. */
const TOO_LONG = 64_000

const it = suite<Context>("SQLite's log")

it.before.each(async (context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'affiliate-log-'))
  context.file = join(context.folder, 'affiliate.db')
  context.database = openSqlite(context.file, { create: true })
  await context.database.transaction((tx) => sql`create table t (x)`.execute(tx))
  context.onlooker = new BetterSqlite(context.file)
})

it.after.each(async ({ database, onlooker, folder }) => {
  onlooker.close()
  await database.close()
  rmSync(folder, { recursive: true, force: true })
})

function stateOf({ onlooker }: Pick<Context, 'onlooker'>): LogState {
  const state = checkpoint(onlooker, 'noop')
  if (!state) throw new Error('SQLite does not tell how the log stands')
  return state
}

/** Writes a row at each turn of the loop until the log is as it shall be; fails when it never gets there. */
async function writeUntil(
  context: Pick<Context, 'onlooker'>,
  write: () => Promise<unknown>,
  reached: (state: LogState) => boolean,
): Promise<LogState> {
  for (let row = 0; row < 3000; row += 1) {
    await write()
    await new Promise((resolve) => setTimeout(resolve))
    const state = stateOf(context)
    if (reached(state)) return state
  }
  throw new Error(`the log never came to it: ${JSON.stringify(stateOf(context))}`)
}

it('is folded in by a thread while hot writes go on, and no commit does it', async (context) => {
  const write = () => context.database.writeAtOnce(ROW)
  await writeUntil(context, write, ({ log, checkpointed }) => log > OWN_MEASURE && checkpointed > OWN_MEASURE)
})

it('begins anew though nobody pauses, before a commit has to fold it in', async (context) => {
  const write = () => context.database.writeAtOnce(ROW)
  let { log: longest } = await writeUntil(context, write, ({ log }) => log > OWN_MEASURE)
  for (let log = longest; log >= longest; log = stateOf(context).log) {
    longest = log
    assert.ok(longest < TOO_LONG, `${longest} pages`)
    await write()
    // No timer: the thread must not get the time to catch up by itself.
    await new Promise((resolve) => setImmediate(resolve))
  }
})

it('is folded in at commits where there are no hot writes', async (context) => {
  for (let row = 0; row < 40; row += 1) {
    await context.database.transaction((tx) => tx.executeQuery(ROW))
    assert.ok(stateOf(context).log <= OWN_MEASURE, JSON.stringify(stateOf(context)))
  }
})

it('is folded in by the thread after other transactions too, once there is one', async (context) => {
  const { database } = context
  await writeUntil(
    context,
    () => database.writeAtOnce(ROW),
    ({ log }) => log > OWN_MEASURE,
  )
  const write = () => database.transaction((tx) => tx.executeQuery(ROW))
  await writeUntil(context, write, ({ log }) => log < OWN_MEASURE)
  await writeUntil(context, write, ({ log, checkpointed }) => log > OWN_MEASURE && checkpointed > OWN_MEASURE)
})

it('is whole and gone when the database has been closed', async (context) => {
  const { database, onlooker, file } = context
  let rows = 0
  const write = () => {
    rows += 1
    return database.writeAtOnce(ROW)
  }
  await writeUntil(context, write, ({ log }) => log > OWN_MEASURE)
  onlooker.close()
  await database.close()
  assert.not.ok(existsSync(`${file}-wal`), 'somebody still has the database open')
  const later = new BetterSqlite(file, { readonly: true })
  assert.equal(later.prepare('select count(*) as n from t').get(), { n: rows })
  assert.equal(later.pragma('integrity_check', { simple: true }), 'ok')
  later.close()
})

it('is folded in at commits again when the thread comes to nothing', async ({ onlooker, folder }) => {
  const log = new SqliteLog(join(folder, 'missing', 'affiliate.db'))
  onlooker.pragma('wal_autocheckpoint = 0')
  log.follow(onlooker)
  while (stateOf({ onlooker }).log < 900) onlooker.prepare(ROW.sql).run()
  log.written({ hot: true })
  const measure = () => onlooker.pragma('wal_autocheckpoint', { simple: true })
  for (let look = 0; look < 1000 && measure() === 0; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.is(measure(), 1000)
  await log.close()
})

it.run()
