import type { Command } from 'commander'
import type { App } from '../server/app.ts'
import type { Config } from '../server/platform/config.ts'
import type { OpenDatabase } from '../server/platform/database/open-database.ts'
import type { GlobalOptions } from './command.ts'
import { Failure, Interrupted } from './failures.ts'
import { layoutOf, Output } from './terminal/output.ts'

/** What an action works with, beside its own arguments. */
export interface CommandContext {
  config: Config
  out: Output
  /** `--yes` */
  yes: boolean
  environment: NodeJS.ProcessEnv
}

/** The environment of the service; `--database-url` stands for all database addresses. */
export function serviceEnvironment({ databaseUrl }: GlobalOptions): NodeJS.ProcessEnv {
  if (databaseUrl === undefined) return process.env
  const { DATABASE_DIRECT_URL: _direct, DATABASE_READ_URL: _read, ...rest } = process.env
  return { ...rest, DATABASE_URL: databaseUrl }
}

/** The same for commands: they go past a transaction pooler, which takes no read-only connections and may have none left. */
function commandEnvironment(options: GlobalOptions): NodeJS.ProcessEnv {
  const { DATABASE_DIRECT_URL: direct, ...rest } = serviceEnvironment(options)
  return direct ? { ...rest, DATABASE_URL: direct } : rest
}

/** Reads the settings; for `serve` those of the service. Throws `SettingError`. */
export async function openContext(
  command: Command,
  { service = false }: { service?: boolean } = {},
): Promise<CommandContext> {
  const options = command.optsWithGlobals<GlobalOptions>()
  const { json = false, yes = false } = options
  const environment = service ? serviceEnvironment(options) : commandEnvironment(options)
  const { readConfig } = await import('../server/platform/config.ts')
  const config = readConfig(environment)
  const layout = layoutOf(process.stdout, environment)
  return { config, yes, environment, out: new Output({ json, zone: config.BILLING_TIMEZONE, layout }) }
}

/**
 * Runs `work` over the services and an existing, migrated database, and closes them. Creates neither database nor key.
 * With `readOnly` the database itself refuses every write, and no writer has to wait. With `movesMoney` it refuses to run beside processes
 * with other money settings, and audits a change of them once `work` is done.
 */
export async function withApp(
  command: Command,
  work: (context: CommandContext & { app: App }) => Promise<void>,
  options: { readOnly?: boolean; movesMoney?: boolean } = {},
): Promise<void> {
  const context = await openContext(command)
  const { refuseMissingFile } = await import('../server/platform/database/open-database.ts')
  await refuseMissingFile(context.config.DATABASE_URL)
  const { movesMoney = false, ...access } = options
  const { openApp } = await import('../server/app.ts')
  const { loadOrm } = await import('../server/platform/database/entities.ts')
  const app = await openApp({
    ...access,
    create: false,
    environment: context.environment,
    logLevel: context.environment.LOG_LEVEL || 'silent',
  })
  try {
    await assertMigrated(app.database, options)
    if (!options.readOnly) {
      await refuseRetiredKey(app)
      // Before the first transaction: loading it takes time, and a transaction must not keep other writers waiting that long.
      await loadOrm(app.database.dialect)
    }
    if (movesMoney) await refuseOtherMoney(app)
    await work({ ...context, app })
    if (movesMoney && !options.readOnly) await auditMoney(app)
  } finally {
    // The error is printed on a line of its own.
    context.out.endProgress()
    await app.close()
  }
}

async function refuseOtherMoney({ platform }: App): Promise<void> {
  const processes = await import('../server/processes/processes.service.ts')
  await processes.refuseOtherMoneySettings(platform.database.reader, platform.config)
}

async function auditMoney({ platform }: App): Promise<void> {
  const processes = await import('../server/processes/processes.service.ts')
  await processes.auditMoneySettings(platform)
}

async function refuseRetiredKey({ platform }: App): Promise<void> {
  const seals = await import('../server/ledger/seals/seals.service.ts')
  await seals.refuseRetiredKey(platform)
}

/**
 * Runs `work` over the database as it is, migrated or not, without services and keys. With `readOnly` the database itself
 * refuses every write; with `replica` it is that of DATABASE_READ_URL.
 */
export async function withDatabase(
  command: Command,
  work: (context: CommandContext & { database: OpenDatabase }) => Promise<void>,
  { readOnly = false, replica = false }: { readOnly?: boolean; replica?: boolean } = {},
): Promise<void> {
  const context = await openContext(command)
  const { openDatabase, refuseOtherDatabase } = await import('../server/platform/database/open-database.ts')
  const { DATABASE_URL: primary, DATABASE_READ_URL: other } = context.config
  if (replica && other === undefined)
    throw new Failure('DATABASE_READ_URL is not set. Set it to the replica.')
  if (replica && other !== undefined) await refuseOtherDatabase('DATABASE_READ_URL', other, primary)
  const database = await openDatabase((replica && other) || primary, { create: false, readOnly })
  try {
    await work({ ...context, database })
  } finally {
    context.out.endProgress()
    await database.close()
  }
}

/** Where the database lies, without a password. */
export async function databasePlace(config: Config): Promise<string> {
  const { resolve } = await import('node:path')
  const { sqliteFileOf } = await import('../server/platform/config.ts')
  const file = sqliteFileOf(config.DATABASE_URL)
  if (file !== null) return resolve(file)
  const { withoutPassword } = await import('../server/platform/database/postgres-address.ts')
  return withoutPassword(config.DATABASE_URL)
}

/** Refuses a database that lacks migrations, since queries are for this version's schema, and writes to one of a newer version. */
export async function assertMigrated(
  database: OpenDatabase,
  { readOnly = false }: { readOnly?: boolean } = {},
): Promise<void> {
  const { migrationState, refuseNewerDatabase } = await import(
    '../server/platform/database/migration-state.ts'
  )
  await assertReachable(database)
  const state = await migrationState(database)
  if (!readOnly) refuseNewerDatabase(state)
  const { pending } = state
  if (pending.length === 0) return
  throw new Failure(
    `The database lacks ${pending.length} migration${pending.length > 1 ? 's' : ''}. Run "affiliate db migrate".`,
    { code: 'unavailable', extra: { pending_migrations: pending } },
  )
}

/**
 * Throws the database's own error: a wrong password must not look like a database that has no tables. Refuses a database made before
 * 0.2.0.
 */
export async function assertReachable(database: OpenDatabase): Promise<void> {
  const { sql } = await import('kysely')
  const { migrationState } = await import('../server/platform/database/migration-state.ts')
  await sql`select 1`.execute(database.reader)
  await migrationState(database)
}

/** Whether `confirm` asks: there is a terminal, and no `--yes`. */
export function isAsked({ yes }: CommandContext): boolean {
  return !yes && Boolean(process.stdin.isTTY && process.stderr.isTTY)
}

/** For commands that move money: `withApp(command, work, MOVES_MONEY)`. */
export const MOVES_MONEY = { movesMoney: true } as const

/** For commands that only read: `withApp(command, work, READS)`. */
export const READS = { readOnly: true } as const

/**
 * Asks before what moves money, concerns a person or cannot be undone. `--yes` answers it; without a terminal it fails. Check that
 * what the question names exists before asking.
 */
export async function confirm(context: CommandContext, question: string): Promise<void> {
  if (context.yes) return
  if (!isAsked(context)) throw new Failure('Not a terminal; confirm with --yes.')
  const { Terminal } = await import('./terminal/prompts.ts')
  const terminal = new Terminal()
  const agreed = await terminal.agrees(question).finally(() => terminal.close())
  if (terminal.interrupted) throw new Interrupted()
  if (!agreed) throw new Failure('Nothing was done.')
}
