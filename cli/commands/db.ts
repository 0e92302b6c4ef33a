import type { Command } from 'commander'
import { addGroup, exampleText } from '../command.ts'
import { assertReachable, databasePlace, openContext, READS, withDatabase } from '../context.ts'

export function addDatabaseCommands(program: Command): void {
  const group = addGroup(program, 'db', 'the database: its schema and its backups')
  group
    .command('migrate')
    .description('bring the database to the newest schema; makes database and keys where there are none')
    .addHelpText('after', exampleText('db migrate', 'db migrate --database-url sqlite:./data/affiliate.db'))
    .action((_options: object, command: Command) => migrate(command))
  group
    .command('status')
    .description('where the database lies, and which migrations have run and which wait')
    .addHelpText('after', exampleText('db status --json'))
    .action((_options: object, command: Command) => status(command))
  group
    .command('backup')
    .description('write a whole copy to FILE while the service goes on; FILE must not exist')
    .argument('<file>')
    .addHelpText('after', exampleText('db backup ./affiliate-2026-11-20.db'))
    .action((file: string, _options: object, command: Command) => backup(file, command))
}

async function migrate(command: Command): Promise<void> {
  const { out, config, environment } = await openContext(command)
  const { openApp } = await import('../../server/app.ts')
  const { migrate: runMigrations } = await import('../../server/platform/migrator.ts')
  const { migrationState } = await import('../../server/platform/migration-state.ts')
  const app = await openApp({ create: true, environment, logLevel: environment.LOG_LEVEL || 'silent' })
  try {
    await assertReachable(app.database)
    const migrated = await runMigrations(app.database)
    const { executed } = await migrationState(app.database)
    const database = await databasePlace(config)
    out.show({ database, migrated, executed }, () => [
      migrated.length === 0 ? 'Nothing to do: the schema is the newest.' : `Applied ${migrated.join(', ')}.`,
      `Database: ${database}`,
    ])
  } finally {
    await app.close()
  }
}

function status(command: Command): Promise<void> {
  return withDatabase(
    command,
    async ({ out, config, database }) => {
      const { migrationState } = await import('../../server/platform/migration-state.ts')
      await assertReachable(database)
      const { executed, pending } = await migrationState(database)
      const place = await databasePlace(config)
      out.show({ database: place, dialect: database.dialect, executed, pending }, () => [
        `Database    ${place} (${database.dialect})`,
        `Executed    ${executed.join(', ') || 'none'}`,
        `Pending     ${pending.length > 0 ? `${pending.join(', ')}: run "affiliate db migrate"` : 'none'}`,
      ])
    },
    READS,
  )
}

function backup(file: string, command: Command): Promise<void> {
  return withDatabase(
    command,
    async ({ out, database }) => {
      const { backUp } = await import('../backup.ts')
      await assertReachable(database)
      const made = await backUp(database, file)
      out.show({ file: made.file, bytes: made.bytes, restore: made.restore }, () => [
        `Wrote ${made.file} (${made.bytes.toLocaleString('en')} bytes).`,
        `To restore: ${made.restore}`,
        'Keep APP_KEY (or the file app.key) too: the webhook secrets and bank accounts inside open with nothing else.',
      ])
    },
    READS,
  )
}
