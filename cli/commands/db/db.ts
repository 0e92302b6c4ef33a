import { type Command, Option } from 'commander'
import type { Config } from '../../../server/platform/config.ts'
import { addGroup, exampleText } from '../../command.ts'
import {
  assertReachable,
  confirm,
  databasePlace,
  openContext,
  READS,
  withApp,
  withDatabase,
} from '../../context.ts'
import { Failure } from '../../failures.ts'
import type { Line } from '../../terminal/output.ts'

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
    .command('mark-development')
    .description(
      'mark a copy of a production database as one of development, so that "webhooks replay" and the sandbox work on it',
    )
    .addHelpText(
      'after',
      `
A service that starts with NODE_ENV=production marks its database, and copies carry the mark. Refused with
NODE_ENV=production, and on the database that the production service uses.
${exampleText('db mark-development --database-url sqlite:./copy.db --yes')}`,
    )
    .action((_options: object, command: Command) => unmark(command))
  group
    .command('backup')
    .description('write a whole copy to FILE while the service goes on; FILE must not exist')
    .argument('<file>')
    .addHelpText('after', exampleText('db backup ./affiliate-2026-11-20.db'))
    .action((file: string, _options: object, command: Command) => backup(file, command))
  group
    .command('restore')
    .description('restore a backup into a new database, verify its books, and say how to switch to it')
    .argument('<file>', 'what "db backup" wrote')
    .option('--to <name>', 'the file (SQLite) or database (PostgreSQL) to make; it must not exist')
    .addOption(
      new Option('--discard', 'delete the copy once its books are verified: a drill').conflicts('to'),
    )
    .addHelpText(
      'after',
      `
The present database is not touched. The copy is migrated to this version, and needs the APP_KEY of the backup. PostgreSQL needs
pg_restore, and a role that may create databases; DATABASE_URL names the server.
${exampleText('db restore ./affiliate-2026-11-20.db', 'db restore ./affiliate.dump --to affiliate_november', 'db restore ./affiliate.dump --discard')}`,
    )
    .action((file: string, options: RestoreOptions, command: Command) => restore(file, options, command))
}

async function unmark(command: Command): Promise<void> {
  await withApp(command, async (context) => {
    const { app, out } = context
    const marks = await import('../../../server/production-mark.ts')
    if (!(await marks.assertMarkCanGo(app.database, app.platform.config))) {
      return out.show({ changed: false }, () => [
        'This database is not marked as production; nothing changed.',
      ])
    }
    const place = await databasePlace(context.config)
    await confirm(context, `Mark ${place} as a database of development? Then events can be forged on it.`)
    const changed = await marks.markDevelopment(app.platform, app.database)
    out.show({ changed }, () => [`${place} is marked as a database of development.`])
  })
}

async function migrate(command: Command): Promise<void> {
  const { out, config, environment } = await openContext(command)
  const { openApp } = await import('../../../server/app.ts')
  const { migrate: runMigrations } = await import('../../../server/migrator.ts')
  const { migrationState } = await import('../../../server/platform/database/migration-state.ts')
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
      const { migrationState } = await import('../../../server/platform/database/migration-state.ts')
      await assertReachable(database)
      const { executed, pending, unknown } = await migrationState(database)
      const { isProduction } = await import('../../../server/production-mark.ts')
      const production = executed.length > 0 && (await isProduction(database.reader))
      const place = await databasePlace(config)
      out.show({ database: place, dialect: database.dialect, production, executed, pending, unknown }, () => [
        `Database    ${place} (${database.dialect})`,
        `Production  ${production ? 'yes' : 'no'}`,
        `Executed    ${executed.join(', ') || 'none'}`,
        `Pending     ${pending.length > 0 ? `${pending.join(', ')}: run "affiliate db migrate"` : 'none'}`,
        ...(unknown.length > 0 ? [`Unknown     ${unknown.join(', ')}: of a newer version`] : []),
      ])
    },
    READS,
  )
}

function backup(file: string, command: Command): Promise<void> {
  return withDatabase(
    command,
    async ({ out, database }) => {
      const { backUp } = await import('./backup.ts')
      await assertReachable(database)
      const made = await backUp(database, file)
      const byHand = database.dialect === 'postgresql' ? await manualRestore(made.file, database.url) : []
      out.show({ file: made.file, bytes: made.bytes, restore: made.restore }, () => [
        `Wrote ${made.file} (${made.bytes.toLocaleString('en')} bytes).`,
        'To restore it into a new database:',
        { command: `  ${made.restore}` },
        ...byHand,
        'Keep APP_KEY (or the file app.key) too: the webhook secrets and bank accounts inside open with nothing else.',
      ])
    },
    READS,
  )
}

interface RestoreOptions {
  to?: string
  discard?: boolean
}

async function restore(file: string, options: RestoreOptions, command: Command): Promise<void> {
  const { out, config } = await openContext(command)
  const { restoreBackup } = await import('./restore.ts')
  const { copy, migrated, results } = await restoreBackup(config, out, file, options)
  const broken = results.filter(({ breaches }) => breaches.length > 0)
  const rows = results.reduce((sum, result) => sum + result.rows, 0)
  const names = broken.map(({ name }) => name).join(', ')
  const verdict = {
    migrated,
    ok: broken.length === 0,
    invariants: results.map(({ name, rows, breaches }) => ({ name, rows, breaches: breaches.length })),
  }
  if (options.discard) {
    out.show({ restored: null, ...verdict, swap_commands: [] }, () => [
      `Restored ${file}, checked ${counted(rows, 'row')}, and deleted the copy.`,
      ...(broken.length > 0 ? [] : [`All ${results.length} invariants hold.`]),
    ])
    if (broken.length === 0) return
    throw new Failure(
      `The books of the backup do not hold: ${names}. Restore it without --discard to see the rows with "affiliate ledger verify".`,
    )
  }
  const present = await databasePlace(config)
  const settings = await switchSettings(config, copy.url)
  const document = {
    restored: copy.place,
    database_url: copy.url,
    ...verdict,
    swap_commands: broken.length === 0 ? copy.swapCommands() : [],
  }
  out.show(document, () => [
    `Restored into ${copy.place}${migrated.length > 0 ? ` and applied ${counted(migrated.length, 'migration')}` : ''}.`,
    ...(broken.length > 0
      ? []
      : [
          `All ${results.length} invariants hold (${counted(rows, 'row')} checked). The present database, ${present}, was not changed.`,
          '',
          'To switch to the restored database, stop the service and either',
          `  ${settings}, or`,
          '  keep DATABASE_URL and run:',
          ...copy.swapCommands().map((line) => ({ command: `    ${line}` })),
          ...(copy.url.startsWith('sqlite:')
            ? []
            : [
                'If the service runs as a role that is not the owner, let that role use the restored database before you switch:',
                { command: `  affiliate db grants ROLE --database-url ${copy.url}` },
              ]),
          'Then start the service with the APP_KEY that it has now.',
        ]),
  ])
  if (broken.length === 0) return
  throw new Failure(
    `The books of the backup do not hold: ${names}. See "affiliate ledger verify --database-url ${copy.url}"; the present database was not changed.`,
  )
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** The settings that make the service use the restored database, with the keys and files that it has now. */
async function switchSettings(config: Config, url: string): Promise<string> {
  const { resolve } = await import('node:path')
  const { dataFolder } = await import('../../../server/platform/config.ts')
  const setting = `set DATABASE_URL to ${url}`
  if (!url.startsWith('sqlite:')) return `${setting} (add the password)`
  const folder = resolve(dataFolder(config))
  const moved = resolve(dataFolder({ ...config, DATABASE_URL: url })) !== folder
  return moved ? `${setting} and DATA_DIR to ${folder}` : setting
}

/** For a machine where only PostgreSQL's own tools are installed. */
async function manualRestore(file: string, databaseUrl: string): Promise<Line[]> {
  const { databaseNameOf, withDatabaseName, withoutPassword } = await import(
    '../../../server/platform/database/postgres-address.ts'
  )
  const { swapCommand, toolAddress } = await import('./postgres-tools.ts')
  const { shellWord } = await import('./restored-copy.ts')
  const name = databaseNameOf(databaseUrl)
  const restored = `${name}_restored`
  const address = (database: string) => shellWord(toolAddress(withDatabaseName(databaseUrl, database)).url)
  return [
    'Or by hand, with the programs of PostgreSQL; stop the service before the last command:',
    ...[
      `createdb --maintenance-db=${address('postgres')} --template=template0 ${shellWord(restored)}`,
      `pg_restore --exit-on-error --no-owner --no-privileges --dbname=${address(restored)} ${shellWord(file)}`,
      `affiliate ledger verify --database-url ${shellWord(withoutPassword(withDatabaseName(databaseUrl, restored)))}`,
      swapCommand(databaseUrl, 'postgres', name, restored),
    ].map((command) => ({ command: `  ${command}` })),
  ]
}
