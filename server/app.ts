import { hostname } from 'node:os'
import type { z } from 'zod'
import { reportTamperedRow } from './flags/forged-rows.service.ts'
import { checkSealStorage } from './ledger/seals/stored-seals.service.ts'
import { Caches } from './platform/cache/caches.ts'
import { publishSignals } from './platform/cache/signals.ts'
import { type Clock, systemClock } from './platform/clock.ts'
import { type Config, readConfig, SettingError } from './platform/config.ts'
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
import { type ProcessorEventRules, processorEventsSchema } from './processor/events.settings.ts'
import { createHttpProcessor } from './processor/http-processor.ts'
import { createManualProcessor } from './processor/manual/manual-processor.ts'
import type { Processor } from './processor/processor.ts'
import { safepayEventRules } from './processor/safepay/safepay-events.ts'
import { createSafepayProcessor, safepayOptions } from './processor/safepay/safepay-processor.ts'
import { createSignatureScheme } from './processor/signatures/choose-scheme.ts'
import { hmacSettingsSchema, type SignatureScheme } from './processor/signatures/hmac.ts'

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

/** The composition root: settings → database → services. Throws `SettingError` on a setting that makes no sense. */
export async function openApp(options: OpenOptions): Promise<App> {
  const config = readConfig(options.environment ?? process.env)
  checkSealStorage(config)
  const eventRules = readEventRules(config)
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
  const processorSignature = readSignature(config, sandbox)
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
    eventRules,
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

function readEventRules(config: Config): ProcessorEventRules {
  if (config.PROCESSOR === 'safepay-raast' && config.PROCESSOR_EVENTS === undefined) {
    return safepayEventRules(config.SAFEPAY_PAYOUT_EVENT_UNIT)
  }
  return readJson('PROCESSOR_EVENTS', config, processorEventsSchema)
}

function readSignature(config: Config, sandbox: SandboxAccess | null): App['processorSignature'] {
  const scheme = createSignatureScheme(
    config.PROCESSOR_SIGNATURE === 'hmac'
      ? { scheme: 'hmac', hmac: readJson('PROCESSOR_SIGNATURE_HMAC', config, hmacSettingsSchema) }
      : { scheme: config.PROCESSOR_SIGNATURE },
  )
  const secrets = config.PROCESSOR_WEBHOOK_SECRETS ?? (sandbox ? [sandbox.webhook_secret] : [])
  for (const secret of secrets) {
    const problem = scheme.secretProblem(secret)
    if (problem) throw new SettingError('PROCESSOR_WEBHOOK_SECRETS', problem)
  }
  return { scheme, secrets }
}

/** The setting's JSON. Throws `SettingError`: `rules.0.types: …`, or the problem alone where the whole is wrong. */
function readJson<Schema extends z.ZodType>(
  name: 'PROCESSOR_EVENTS' | 'PROCESSOR_SIGNATURE_HMAC',
  config: Config,
  schema: Schema,
): z.output<Schema> {
  let json: unknown
  try {
    json = JSON.parse(config[name] ?? '{}')
  } catch {
    throw new SettingError(name, 'must be JSON')
  }
  const { data, error } = schema.safeParse(json)
  if (!error) return data
  const [issue] = error.issues
  throw new SettingError(
    name,
    [...(issue?.path.length ? [issue.path.join('.')] : []), issue?.message].join(': '),
  )
}

function createProcessor(
  platform: Platform,
  sandbox: SandboxAccess | null,
  sandboxUrl: OpenOptions['sandboxUrl'],
): Processor & { close(): Promise<void> } {
  const { config } = platform
  if (config.PROCESSOR === 'manual') return createManualProcessor(platform)
  if (config.PROCESSOR === 'safepay-raast') return createSafepayProcessor(safepayOptions(config))
  const apiKey = config.PROCESSOR_API_KEY ?? sandbox?.api_key ?? ''
  const url = config.PROCESSOR_URL ?? (() => sandboxUrl?.() ?? sandbox?.url ?? null)
  return createHttpProcessor({ url, apiKey, timeoutMs: config.PROCESSOR_TIMEOUT_MS })
}
