import { sql } from 'kysely'
import { SettingError } from '../config.ts'
import type { OpenDatabase } from './open-database.ts'

/** Settings of the PostgreSQL server, database or role that the service cannot work with; limits are in ms, 0 is none. */
const NEEDS: Record<string, { fits(value: string): boolean; needs: string }> = {
  server_encoding: {
    fits: (value) => value === 'UTF8',
    needs:
      'UTF8, for every language. Make a database with "createdb --encoding=UTF8 --template=template0 NAME"',
  },
  default_transaction_isolation: { fits: (value) => value === 'read committed', needs: 'read committed' },
  // With another one the guards of the journal do not run.
  session_replication_role: { fits: (value) => value === 'origin', needs: 'origin' },
  standard_conforming_strings: { fits: (value) => value === 'on', needs: 'on' },
  statement_timeout: atLeast(60_000),
  idle_in_transaction_session_timeout: atLeast(60_000),
  lock_timeout: atLeast(1000),
  // A check of all books is one transaction.
  transaction_timeout: { fits: (value) => value === '0', needs: '0' },
}

function atLeast(ms: number) {
  return {
    fits: (value: string) => value === '0' || Number(value) >= ms,
    needs: `0, or at least ${ms / 1000}s`,
  }
}

/** Where a value was set, as pg_settings.source names it. */
const PLACES: Record<string, string> = {
  database: ' of the database',
  user: ' of the role',
  'database user': ' of the role in this database',
  client: ' in the address or PGOPTIONS',
  'configuration file': ' of the server',
}

/** What is wrong with the server's settings: one sentence each, with the setting's name. Empty on SQLite. */
export async function unsuitableSettings(database: OpenDatabase): Promise<string[]> {
  if (database.dialect !== 'postgresql') return []
  const { rows } = await sql<{ name: string; setting: string; shown: string; source: string }>`
    select name, setting, current_setting(name) as shown, source from pg_settings
    where name in (${sql.join(Object.keys(NEEDS))}) order by name`.execute(database.reader)
  const wrong = rows.flatMap(({ name, setting, shown, source }) => {
    const need = NEEDS[name]
    if (!need || need.fits(setting)) return []
    return [`${name}${PLACES[source] ?? ''} is ${shown}; it must be ${need.needs}`]
  })
  const schema = await sql<{ name: string | null }>`select current_schema() as name`.execute(database.reader)
  return schema.rows[0]?.name ? wrong : [...wrong, 'search_path names no schema that exists']
}

/** Throws `SettingError` for the first setting of the server that the service cannot work with. */
export async function refuseUnsuitableServer(database: OpenDatabase): Promise<void> {
  const [problem] = await unsuitableSettings(database)
  if (problem !== undefined) throw new SettingError('DATABASE_URL', problem)
}
