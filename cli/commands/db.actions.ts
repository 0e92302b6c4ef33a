import { resolve } from 'node:path'
import type { Command } from 'commander'
import { sql } from 'kysely'
import { openApp } from '../../server/app.ts'
import { grantStatements, roleProblem } from '../../server/migrations/grants.ts'
import { migrate } from '../../server/migrator.ts'
import { type Config, dataFolder } from '../../server/platform/config.ts'
import { migrationState } from '../../server/platform/database/migration-state.ts'
import {
  databaseNameOf,
  withDatabaseName,
  withoutPassword,
} from '../../server/platform/database/postgres-address.ts'
import { assertMarkCanGo, isProduction, markDevelopment } from '../../server/production-mark.ts'
import { backUp } from '../backup/backup.ts'
import { shellWord, swapCommand, toolAddress } from '../backup/postgres-tools.ts'
import { restoreBackup } from '../backup/restore.ts'
import {
  assertMigrated,
  assertReachable,
  confirm,
  databasePlace,
  openContext,
  readsDatabase,
  withDatabase,
  writes,
} from '../context.ts'
import { Failure } from '../failures.ts'
import { counted, type Line, sum } from '../terminal/output.ts'

export async function migrateDatabase(_options: object, command: Command): Promise<void> {
  const { out, config, environment } = openContext(command)
  const app = await openApp({ create: true, environment, logLevel: environment.LOG_LEVEL || 'silent' })
  try {
    await assertReachable(app.database)
    const migrated = await migrate(app.database)
    const { executed } = await migrationState(app.database)
    const database = databasePlace(config)
    out.show({ database, migrated, executed }, () => [
      migrated.length === 0 ? 'Nothing to do: the schema is the newest.' : `Applied ${migrated.join(', ')}.`,
      `Database: ${database}`,
    ])
  } finally {
    await app.close()
  }
}

export const status = readsDatabase(async ({ out, config, database }) => {
  await assertReachable(database)
  const { executed, pending, unknown } = await migrationState(database)
  const production = executed.length > 0 && (await isProduction(database.reader))
  const place = databasePlace(config)
  out.show({ database: place, dialect: database.dialect, production, executed, pending, unknown }, () => [
    `Database    ${place} (${database.dialect})`,
    `Production  ${production ? 'yes' : 'no'}`,
    `Executed    ${executed.join(', ') || 'none'}`,
    `Pending     ${pending.length > 0 ? `${pending.join(', ')}: run "affiliate db migrate"` : 'none'}`,
    ...(unknown.length > 0 ? [`Unknown     ${unknown.join(', ')}: of a newer version`] : []),
  ])
})

export const backup = readsDatabase(async ({ out, database }, file: string) => {
  await assertReachable(database)
  const made = await backUp(database, file)
  const byHand = database.dialect === 'postgresql' ? manualRestore(made.file, database.url) : []
  out.show({ file: made.file, bytes: made.bytes, restore: made.restore }, () => [
    `Wrote ${made.file} (${made.bytes.toLocaleString('en')} bytes).`,
    'To restore it into a new database:',
    { command: `  ${made.restore}` },
    ...byHand,
    'Keep APP_KEY (or the file app.key) too: the webhook secrets and bank accounts inside open with nothing else.',
  ])
})

type RestoreOptions = { to?: string; discard?: boolean }

export async function restore(file: string, options: RestoreOptions, command: Command): Promise<void> {
  const { out, config } = openContext(command)
  const { copy, migrated, results } = await restoreBackup(config, out, file, options)
  const broken = results.filter(({ breaches }) => breaches.length > 0)
  const ok = broken.length === 0
  const rows = counted(sum(results.map((result) => result.rows)), 'row')
  const invariants = results.map(({ name, rows, breaches }) => ({ name, rows, breaches: breaches.length }))
  const problem = `The books of the backup do not hold: ${broken.map(({ name }) => name).join(', ')}.`
  if (options.discard) {
    out.show({ restored: null, migrated, ok, invariants, swap_commands: [] }, () => [
      `Restored ${file}, checked ${rows}, and deleted the copy.`,
      ...(ok ? [`All ${results.length} invariants hold.`] : []),
    ])
    if (ok) return
    throw new Failure(
      `${problem} Restore it without --discard to see the rows with "affiliate ledger verify".`,
    )
  }
  const { place, url } = copy
  const swap = ok ? copy.swapCommands() : []
  const applied = migrated.length > 0 ? ` and applied ${counted(migrated.length, 'migration')}` : ''
  out.show({ restored: place, database_url: url, migrated, ok, invariants, swap_commands: swap }, () => [
    `Restored into ${place}${applied}.`,
    ...(ok
      ? [
          `All ${results.length} invariants hold (${rows} checked). The present database, ${databasePlace(config)}, was not changed.`,
          '',
          'To switch to the restored database, stop the service and either',
          `  ${switchSettings(config, url)}, or`,
          '  keep DATABASE_URL and run:',
          ...swap.map((line) => ({ command: `    ${line}` })),
          ...(url.startsWith('sqlite:')
            ? []
            : [
                'If the service runs as a role that is not the owner, let that role use the restored database before you switch:',
                { command: `  affiliate db grants ROLE --database-url ${url}` },
              ]),
          'Then start the service with the APP_KEY that it has now.',
        ]
      : []),
  ])
  if (ok) return
  throw new Failure(
    `${problem} See "affiliate ledger verify --database-url ${url}"; the present database was not changed.`,
  )
}

/** The settings that make the service use the restored database, with the keys and files that it has now. */
function switchSettings(config: Config, url: string): string {
  const setting = `set DATABASE_URL to ${url}`
  if (!url.startsWith('sqlite:')) return `${setting} (add the password)`
  const folder = resolve(dataFolder(config))
  const moved = resolve(dataFolder({ ...config, DATABASE_URL: url })) !== folder
  return moved ? `${setting} and DATA_DIR to ${folder}` : setting
}

/** For a machine where only PostgreSQL's own tools are installed. */
function manualRestore(file: string, databaseUrl: string): Line[] {
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

export const markAsDevelopment = writes(async (context) => {
  const { app, platform, out } = context
  if (!(await assertMarkCanGo(app.database, platform.config))) {
    return out.show({ changed: false }, () => ['This database is not marked as production; nothing changed.'])
  }
  const place = databasePlace(context.config)
  await confirm(context, `Mark ${place} as a database of development? Then events can be forged on it.`)
  const changed = await markDevelopment(platform, app.database)
  out.show({ changed }, () => [`${place} is marked as a database of development.`])
})

/** The role in statements that are only printed. */
const EXAMPLE_ROLE = 'affiliate_service'

export function grants(
  role: string | undefined,
  { dryRun = false }: { dryRun?: boolean },
  command: Command,
): Promise<void> {
  const applies = role !== undefined && !dryRun
  return withDatabase(
    command,
    async ({ out, database }) => {
      if (database.dialect !== 'postgresql') {
        throw new Failure('SQLite has no roles. Protect the file with the permissions of the file system.')
      }
      await assertMigrated(database)
      const problem = role === undefined ? null : await roleProblem(database, role)
      if (problem !== null) throw new Failure(problem)
      const statements = await grantStatements(database, role ?? EXAMPLE_ROLE)
      if (applies) {
        await database.transaction(async (tx) => {
          for (const statement of statements) await sql.raw(statement).execute(tx)
        })
      }
      out.show({ role: role ?? null, applied: applies, statements }, () =>
        applies
          ? [
              `Role ${role} can run the service now. Name it in the service's DATABASE_URL.`,
              'After each "affiliate db migrate", which is for the owner of the tables, run this again.',
            ]
          : [
              ...(role === undefined ? [`create role ${EXAMPLE_ROLE} login password '...';`] : []),
              ...statements.map((statement) => `${statement};`),
            ],
      )
    },
    { readOnly: !applies },
  )
}
