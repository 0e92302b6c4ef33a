import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { sql } from 'kysely'
import type { App } from '../server/app.ts'
import { type Config, sqliteFileOf } from '../server/platform/config.ts'
import { migrationState, refuseNewerDatabase } from '../server/platform/database/migration-state.ts'
import {
  type OpenDatabase,
  openDatabase,
  refuseMissingFile,
  refuseOtherDatabase,
} from '../server/platform/database/open-database.ts'
import { withoutPassword } from '../server/platform/database/postgres-address.ts'
import type { Platform } from '../server/platform/platform.ts'
import { readSettings } from '../server/read-settings.ts'
import { type GlobalOptions, serviceEnvironment } from './command.ts'
import { Failure, interrupted } from './failures.ts'
import { counted, layoutOf, Output } from './terminal/output.ts'
import { Terminal } from './terminal/prompts.ts'

/** What an action works with, beside its own arguments. */
export interface CommandContext {
  config: Config
  out: Output
  /** `--yes` */
  yes: boolean
  environment: NodeJS.ProcessEnv
}

/** The same over the services. */
export type AppContext = CommandContext & { app: App; platform: Platform }

/** The environment of commands: they go past a transaction pooler, which takes no read-only connections and may have none left. */
function commandEnvironment(options: GlobalOptions): NodeJS.ProcessEnv {
  const { DATABASE_DIRECT_URL: direct, ...rest } = serviceEnvironment(options)
  return direct ? { ...rest, DATABASE_URL: direct } : rest
}

/** Reads the settings; for `serve` those of the service. Throws `SettingError`. */
export function openContext(
  command: Command,
  { service = false }: { service?: boolean } = {},
): CommandContext {
  const options = command.optsWithGlobals<GlobalOptions>()
  const { json = false, yes = false, fullIds = false } = options
  const environment = service ? serviceEnvironment(options) : commandEnvironment(options)
  const config = readSettings(environment)
  const layout = { ...layoutOf(process.stdout, environment), fullIds }
  return { config, yes, environment, out: new Output({ json, zone: config.BILLING_TIMEZONE, layout }) }
}

/** For commands that only read. */
export const READS = { readOnly: true } as const

type Work<Args extends unknown[]> = (context: AppContext, ...args: Args) => Promise<void> | void
type Action<Args extends unknown[]> = (...args: [...Args, command: Command]) => Promise<void>

function action<Args extends unknown[]>(work: Work<Args>, access: AppAccess): Action<Args> {
  return (...all) => {
    const args = all.slice(0, -1) as Args
    return withApp(all.at(-1) as Command, async (context) => work(context, ...args), access)
  }
}

/** An action over the services that only reads. Commander passes the command last; `work` gets the services first instead. */
export const reads = <Args extends unknown[]>(work: Work<Args>) => action(work, READS)
/** An action that writes, unless it has `--dry-run`. */
export const writes = <Args extends unknown[]>(work: Work<Args>) => action(work, {})
/** An action that moves money, unless it has `--dry-run`. */
export const movesMoney = <Args extends unknown[]>(work: Work<Args>) => action(work, { movesMoney: true })

interface AppAccess {
  readOnly?: boolean
  movesMoney?: boolean
}

/**
 * Runs `work` over the services and an existing, migrated database, and closes them. Creates neither database nor key.
 * With `readOnly` or `--dry-run` the database itself refuses every write, and no writer has to wait. With `movesMoney` it refuses to run
 * beside processes with other money settings, and audits a change of them once `work` is done.
 */
export async function withApp(
  command: Command,
  work: (context: AppContext) => Promise<void>,
  { movesMoney = false, ...access }: AppAccess = {},
): Promise<void> {
  const context = openContext(command)
  const { readOnly = command.opts<{ dryRun?: boolean }>().dryRun ?? false } = access
  refuseMissingFile(context.config.DATABASE_URL)
  // What needs no services need not wait until they are loaded.
  const [{ openApp }, seals, processes] = await Promise.all([
    import('../server/app.ts'),
    import('../server/ledger/seals/seals.service.ts'),
    import('../server/processes/processes.service.ts'),
  ])
  const { environment } = context
  const logLevel = environment.LOG_LEVEL || 'silent'
  const app = await openApp({ readOnly, create: false, environment, logLevel })
  const { platform } = app
  try {
    await assertMigrated(app.database, { readOnly })
    if (!readOnly) await seals.refuseRetiredKey(platform)
    if (movesMoney) await processes.refuseOtherMoneySettings(platform.database.reader, platform.config)
    await work({ ...context, app, platform })
    if (movesMoney && !readOnly) await processes.auditMoneySettings(platform)
  } finally {
    // The error is printed on a line of its own.
    context.out.endProgress()
    await app.close()
  }
}

type DatabaseContext = CommandContext & { database: OpenDatabase }

/** An action over the database alone, which it only reads. */
export function readsDatabase<Args extends unknown[]>(
  work: (context: DatabaseContext, ...args: Args) => Promise<void>,
): Action<Args> {
  return (...all) => {
    const args = all.slice(0, -1) as Args
    return withDatabase(all.at(-1) as Command, (context) => work(context, ...args), READS)
  }
}

/**
 * Runs `work` over the database as it is, migrated or not, without services and keys. With `readOnly` the database itself
 * refuses every write; with `replica` it is that of DATABASE_READ_URL.
 */
export async function withDatabase(
  command: Command,
  work: (context: DatabaseContext) => Promise<void>,
  { readOnly = false, replica = false }: { readOnly?: boolean; replica?: boolean } = {},
): Promise<void> {
  const context = openContext(command)
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
export function databasePlace({ DATABASE_URL: url }: Config): string {
  const file = sqliteFileOf(url)
  return file === null ? withoutPassword(url) : resolve(file)
}

/** Refuses a database that lacks migrations, since queries are for this version's schema, and writes to one of a newer version. */
export async function assertMigrated(
  database: OpenDatabase,
  { readOnly = false }: { readOnly?: boolean } = {},
): Promise<void> {
  await assertReachable(database)
  const state = await migrationState(database)
  if (!readOnly) refuseNewerDatabase(state)
  const { pending } = state
  if (pending.length === 0) return
  throw new Failure(
    `The database lacks ${counted(pending.length, 'migration')}. Run "affiliate db migrate".`,
    { code: 'unavailable', extra: { pending_migrations: pending } },
  )
}

/**
 * Throws the database's own error: a wrong password must not look like a database that has no tables. Refuses a database made before
 * 0.2.0.
 */
export async function assertReachable(database: OpenDatabase): Promise<void> {
  await sql`select 1`.execute(database.reader)
  await migrationState(database)
}

/** Repeats a step, with pauses, until it answers `false` or a signal ends it, which `begun` may tell the user. */
export async function repeat(
  everyMs: number,
  step: () => Promise<boolean>,
  begun: () => void = () => {},
): Promise<void> {
  const end = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end.abort())
  begun()
  while (!end.signal.aborted && (await step())) {
    await pause(everyMs, undefined, { signal: end.signal }).catch(() => undefined)
  }
}

/** Whether `confirm` asks: there is a terminal, and no `--yes`. */
export function isAsked({ yes }: CommandContext): boolean {
  return !yes && Boolean(process.stdin.isTTY && process.stderr.isTTY)
}

/**
 * Asks before what moves money, concerns a person or cannot be undone. `--yes` answers it; without a terminal it fails. Check that
 * what the question names exists before asking.
 */
export async function confirm(context: CommandContext, question: string): Promise<void> {
  if (context.yes) return
  if (!isAsked(context)) throw new Failure('Not a terminal; confirm with --yes.')
  const terminal = new Terminal()
  const agreed = await terminal.agrees(question).finally(() => terminal.close())
  if (terminal.interrupted) throw interrupted()
  if (!agreed) throw new Failure('Nothing was done.')
}
