import { SettingError } from './config.ts'
import type { OpenDatabase } from './open-database.ts'

/**
 * Stops a start as a PostgreSQL role that lacks what the service needs: pending migrations are for the tables' owner, and new tables
 * need new grants. Throws `SettingError` with the commands to run.
 */
export async function checkRole(database: OpenDatabase, pending: readonly string[]): Promise<void> {
  if (database.dialect !== 'postgresql') return
  const { mayMigrate, missingPrivileges } = await import('../migrations/grants.ts')
  const grant = '"affiliate db grants ROLE" as the owner of the tables'
  if (pending.length > 0) {
    if (await mayMigrate(database)) return
    throw new SettingError(
      'DATABASE_URL',
      `${pending.length} migrations are pending and this role may not apply them: run "affiliate db migrate" and then ${grant}`,
    )
  }
  const missing = await missingPrivileges(database)
  if (missing.length === 0) return
  throw new SettingError('DATABASE_URL', `this role may not use ${missing.join(', ')}: run ${grant}`)
}
