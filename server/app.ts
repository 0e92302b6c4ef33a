import { hostname } from 'node:os'
import { reportTamperedRow } from './flags/forged-rows.service.ts'
import { Caches } from './platform/cache/caches.ts'
import { publishSignals } from './platform/cache/signals.ts'
import { type Clock, systemClock } from './platform/clock.ts'
import { type Config, SettingError } from './platform/config.ts'
import {
  findAppKeys,
  readAppKeys,
  readSandboxAccess,
  type SandboxAccess,
} from './platform/crypto/app-keys.ts'
import { refuseForeignKeys } from './platform/crypto/key-mark.ts'
import { createVault } from './platform/crypto/vault.ts'
import {
  checkHosts,
  type OpenDatabase,
  openDatabase,
  refuseOtherDatabase,
} from './platform/database/open-database.ts'
import { withRowKeys } from './platform/database/protected-rows.ts'
import { createIds, systemIds } from './platform/ids.ts'
import { createLog } from './platform/log.ts'
import type { Platform } from './platform/platform.ts'
import { Topics } from './platform/topics.ts'
import { createProcessor } from './processor/create-processor.ts'
import type { ProcessorEventRules } from './processor/events.settings.ts'
import type { Processor } from './processor/processor.ts'
import type { SignatureScheme } from './processor/signatures/hmac.ts'
import { readEventRules, readSettings, readSignatureScheme } from './read-settings.ts'

/** Everything that the edges (HTTP, CLI, jobs) work with. */
export interface App {
  platform: Platform
  database: OpenDatabase
  processor: Processor
  eventRules: ProcessorEventRules
  processorSignature: { scheme: SignatureScheme; secrets: readonly string[] }
  /** The sandbox's keys; `null` with a real processor. */
  sandbox: SandboxAccess | null
  close(): Promise<void>
}

export interface OpenOptions {
  /** Whether a missing database or key may be made. */
  create: boolean
  /** The database itself then refuses every write. */
  readOnly?: boolean
  /** Put in place of what the environment says, for a command's own options. */
  environment?: Record<string, string | undefined>
  /** The server's own address, once it listens. */
  ownUrl?: () => string | null
  /** The running sandbox's address, where this process runs it itself. */
  sandboxUrl?: () => string | null
  logLevel?: string
  /** The system's clock by default. Ids follow it too. */
  clock?: Clock
}

/**
 * The longest that one statement of the service may take on PostgreSQL; see also `withStatementTimeout` and `withLongStatements`.
 * Commands may take longer.
 */
const STATEMENT_TIMEOUT_MS = 10_000

/** A cache reserves its memory, which takes longer than what a command reads. */
const CACHED_BY_COMMANDS = 1000

/** PostgreSQL cuts longer names. */
const MAX_NAME = 63

/** The composition root: settings → database → services. Throws `SettingError` that names every invalid setting. */
export async function openApp(options: OpenOptions): Promise<App> {
  const config = readSettings(options.environment ?? process.env)
  if (!options.readOnly) await checkHosts('DATABASE_URL', config.DATABASE_URL)
  if (config.DATABASE_DIRECT_URL !== undefined) {
    await refuseOtherDatabase('DATABASE_DIRECT_URL', config.DATABASE_DIRECT_URL, config.DATABASE_URL)
  }
  if (options.create && config.DATABASE_READ_URL !== undefined) {
    const refused = refuseOtherDatabase('DATABASE_READ_URL', config.DATABASE_READ_URL, config.DATABASE_URL)
    // A replica that cannot be reached is no error: the primary is read then.
    await refused.catch((error: unknown) => {
      if (error instanceof SettingError) throw error
    })
  }
  if (options.create) await refuseForeignKeys(config.DATABASE_URL, findAppKeys(config))
  const sandbox = config.PROCESSOR === 'sandbox' ? readSandboxAccess(config, options) : null
  const processorSignature = {
    scheme: readSignatureScheme(config),
    secrets: config.PROCESSOR_WEBHOOK_SECRETS ?? (sandbox ? [sandbox.webhook_secret] : []),
  }
  const keys = readAppKeys(config, options)
  const database = await openDatabase(config.DATABASE_URL, {
    create: options.create,
    readOnly: options.readOnly ?? false,
    poolSize: config.DATABASE_POOL_SIZE,
    directUrl: config.DATABASE_DIRECT_URL,
    readUrl: options.create ? config.DATABASE_READ_URL : undefined,
    queryTimeoutMs: options.create ? STATEMENT_TIMEOUT_MS : undefined,
    applicationName: `affiliate ${config.ROLES.join(',')} @ ${hostname()}`.slice(0, MAX_NAME),
  })
  const platform: Platform = {
    config,
    database: withRowKeys(database, keys, (row) => platform.reportTampered(row)),
    clock: options.clock ?? systemClock,
    ids: options.clock ? createIds(options.clock) : systemIds,
    keys,
    vault: createVault(keys),
    log: createLog(options.logLevel ?? config.LOG_LEVEL),
    topics: new Topics(),
    caches: new Caches(options.create ? {} : { maxEntries: CACHED_BY_COMMANDS }),
    reportTampered: (row) => reportTamperedRow(platform, row),
    get publicBaseUrl() {
      return config.PUBLIC_BASE_URL ?? options.ownUrl?.() ?? addressOf(config)
    },
  }
  const sendSignals = publishSignals(platform, database)
  const processor = createProcessor(platform, sandbox, options.sandboxUrl)
  return {
    platform,
    database: withRowKeys(database, keys),
    processor,
    eventRules: readEventRules(config),
    processorSignature,
    sandbox,
    async close() {
      await processor.close()
      await sendSignals()
      await database.close()
    },
  }
}

function addressOf({ HOST, PORT }: Config): string {
  return `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${PORT}`
}
