import { type Client, DatabaseError } from 'pg'
import {
  databaseNameOf,
  withDatabaseName,
  withoutPassword,
} from '../../server/platform/database/postgres-address.ts'
import { clientOf } from '../../server/platform/database/postgres-hosts.ts'
import { Failure } from '../failures.ts'
import type { RestoredCopy } from './backup.ts'
import { quotedName, runTool, swapCommand, toolAddress } from './postgres-tools.ts'

/** https://www.postgresql.org/docs/current/sql-syntax-lexical.html: longer names are cut off. */
const LONGEST_NAME = 63
/** Databases of the server from which others can be made and renamed. */
const MAINTENANCE = ['postgres', 'template1']

/** `presentUrl`: DATABASE_URL, whose database is never touched. `to`: the name of the database to make on the same server. */
export async function postgresCopy(
  backup: string,
  presentUrl: string,
  to: string | undefined,
): Promise<RestoredCopy> {
  const present = databaseNameOf(presentUrl)
  const target = to ?? `${present}_restored`
  if (Buffer.byteLength(target) > LONGEST_NAME) {
    throw new Failure(`${target} is too long for a database's name. Name another with --to.`)
  }
  const draft = `incomplete_restore_${process.pid}`
  const administrator = await connectAdministrator(presentUrl)
  const run = (statement: string) => administrator.query(statement)
  const exists = async (name: string) =>
    (await administrator.query('select 1 from pg_database where datname = $1', [name])).rowCount === 1
  const refuseTaken = async () => {
    if (!(await exists(target))) return
    throw new Failure(`There is a database ${target} already. Name one that does not exist with --to.`)
  }
  let made = false
  try {
    await refuseTaken()
  } catch (error) {
    await administrator.end()
    throw error
  }
  return {
    place: target,
    draftUrl: withDatabaseName(presentUrl, draft),
    url: withoutPassword(withDatabaseName(presentUrl, target)),
    async load() {
      const create = await createStatement(backup, draft)
      made = true
      // The locale of the backup, which may not exist on this server.
      await run(create).catch((error) => {
        if (!isUnknownLocale(error)) throw error
        return run(`create database ${quotedName(draft)} template template0 encoding 'UTF8'`)
      })
      const { url, environment } = toolAddress(withDatabaseName(presentUrl, draft))
      await runTool(
        'pg_restore',
        ['--exit-on-error', '--single-transaction', '--no-owner', '--no-privileges', '--dbname', url, backup],
        { environment },
      )
    },
    async keep() {
      await refuseTaken()
      await run(`alter database ${quotedName(draft)} rename to ${quotedName(target)}`)
      made = false
      await administrator.end()
    },
    async discard() {
      if (made) await run(`drop database if exists ${quotedName(draft)} with (force)`)
      made = false
      await administrator.end()
    },
    swapCommands() {
      return [swapCommand(presentUrl, administrator.database ?? 'postgres', present, target)]
    },
  }
}

/** The archive's own `CREATE DATABASE`, under another name: it carries the encoding and the locale. */
async function createStatement(backup: string, name: string): Promise<string> {
  const script = await runTool('pg_restore', ['--create', '--schema-only', '--file=-', backup])
  const options = /^CREATE DATABASE (?:"(?:[^"]|"")*"|\S+) (WITH .*);$/m.exec(script)?.[1]
  if (options === undefined)
    throw new Failure(`${backup} does not hold a whole database. Restore another backup.`)
  return `create database ${quotedName(name)} ${options}`
}

/** Invalid parameter values and collations: https://www.postgresql.org/docs/current/errcodes-appendix.html */
function isUnknownLocale(error: unknown): boolean {
  return error instanceof DatabaseError && ['22023', '42809', '42704'].includes(error.code ?? '')
}

async function connectAdministrator(url: string): Promise<Client> {
  let problem: unknown
  for (const name of MAINTENANCE) {
    const client = clientOf(withDatabaseName(url, name), { connectionTimeoutMillis: 5000 })
    // Without a listener a connection that breaks while it is idle would end the process; its next query reports it.
    client.on('error', () => {})
    try {
      await client.connect()
      return client
    } catch (error) {
      problem ??= error
    }
  }
  throw problem
}
