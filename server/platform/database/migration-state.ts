import { readdirSync } from 'node:fs'
import { sql } from 'kysely'
import { Refusal } from '../api/refusal.ts'
import { withTimeout } from '../with-timeout.ts'
import { readOnlyError, WRITE_ACCESS, type WriteAccess } from './database-faults.ts'
import type { OpenDatabase } from './open-database.ts'

export interface MigrationState {
  executed: string[]
  pending: string[]
  /** Executed by a newer version, which this one does not know. */
  unknown: string[]
}

/** A migration of every database made before 0.2.0, which was the first release. */
const BEFORE_FIRST_RELEASE = '00002-guards'

/**
 * Which migrations have run and which are pending; writes nothing. Refuses with `unavailable` when the database stalls or was made before
 * 0.2.0.
 */
export async function migrationState(database: OpenDatabase): Promise<MigrationState> {
  const executed = await withTimeout(executedMigrations(database))
  if (executed.includes(BEFORE_FIRST_RELEASE)) {
    throw new Refusal(
      'unavailable',
      'This database was made before version 0.2.0, which cannot read it: set DATABASE_URL to a new database.',
    )
  }
  const known = migrationNames()
  return {
    executed,
    pending: known.filter((name) => !executed.includes(name)),
    unknown: executed.filter((name) => !known.includes(name)),
  }
}

/** Throws `unavailable` for a database of a newer version: what this one writes could be wrong there. */
export function refuseNewerDatabase({ unknown }: MigrationState): void {
  if (unknown.length === 0) return
  throw new Refusal(
    'unavailable',
    `The database belongs to a newer version: this one does not know ${unknown.join(', ')}. Install that version again, or restore a backup from before the upgrade.`,
  )
}

/** The names of all migrations, from their files: importing them would load the whole ORM, which most commands do not need. */
export function migrationNames(): string[] {
  const files = readdirSync(new URL('../../migrations/', import.meta.url))
  return files.flatMap((file) => /^(\d{5}-[a-z0-9-]+)\.[jt]s$/.exec(file)?.[1] ?? []).sort()
}

/** Throws with the code 25006 where the PostgreSQL server takes reads only. */
export async function refuseReadOnlyServer(database: OpenDatabase): Promise<void> {
  if (database.dialect !== 'postgresql') return
  const { rows } = await withTimeout(sql.raw<WriteAccess>(WRITE_ACCESS).execute(database.reader))
  if (rows[0]?.read_only) throw readOnlyError(rows[0])
}

async function executedMigrations({ reader }: OpenDatabase): Promise<string[]> {
  const query = sql<{ name: string }>`select name from mikro_orm_migrations order by name`
  try {
    return (await query.execute(reader)).rows.map(({ name }) => name)
  } catch (error) {
    if (tableIsMissing(error)) return []
    throw error
  }
}

/** Whether a query failed because its table does not exist, for example before the first migration. */
export function tableIsMissing(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return code === '42P01' || (code === 'SQLITE_ERROR' && String(message).startsWith('no such table'))
}
