import { dirname } from 'node:path'
import { z } from 'zod'
import { isLoopbackHost } from './network/loopback.ts'
import { SETTING_GROUPS } from './settings.ts'

/** An invalid setting: stops startup with one line that names it. */
export class SettingError extends Error {
  constructor(name: string, problem: string) {
    super(`setting ${name}: ${problem}`)
    this.name = 'SettingError'
  }
}

const { Service, Data, Money, Processor, Mail, Limits, Flags } = SETTING_GROUPS
const SETTINGS = z.object({ ...Service, ...Data, ...Money, ...Processor, ...Mail, ...Limits, ...Flags })

/** The longest attribution window of an offer. */
const MAX_ATTRIBUTION_DAYS = 365
/** For late orders and repeated deliveries. */
const LATE_ORDER_DAYS = 31

export type Config = Readonly<z.infer<typeof SETTINGS>>

export const SETTING_NAMES: readonly string[] = Object.keys(SETTINGS.shape)

/** The file of a `sqlite:` address (`sqlite:PATH` or `sqlite:///ABSOLUTE`); `null` for any other address. */
export function sqliteFileOf(url: string): string | null {
  return url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : null
}

/** The folder of keys, exports and the sandbox's state: DATA_DIR, else the SQLite file's folder, else `./data`. */
export function dataFolder(config: Pick<Config, 'DATA_DIR' | 'DATABASE_URL'>): string {
  if (config.DATA_DIR) return config.DATA_DIR
  const file = sqliteFileOf(config.DATABASE_URL)
  return file === null ? './data' : dirname(file)
}

/** How mail leaves: over SMTP, as files in `DATA_DIR/mail`, or not at all. */
type MailMode = 'smtp' | 'file' | 'off'

export function mailMode({ SMTP_URL, NODE_ENV }: Pick<Config, 'SMTP_URL' | 'NODE_ENV'>): MailMode {
  if (SMTP_URL === undefined) return NODE_ENV === 'production' ? 'off' : 'file'
  return SMTP_URL === 'off' ? 'off' : 'smtp'
}

/** Whether accounts need a verified e-mail address for what concerns others. */
export function requiresVerifiedEmail(config: Config): boolean {
  return config.REQUIRE_VERIFIED_EMAIL ?? (config.NODE_ENV === 'production' && mailMode(config) === 'smtp')
}

/** Reads the settings from an environment. Throws `SettingError` for the first invalid one. */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(
    Object.keys(SETTINGS.shape)
      .filter((name) => environment[name] !== undefined && environment[name] !== '')
      .map((name) => [name, environment[name]]),
  )
  if (given.PROCESSOR === 'safepay-raast') given.PROCESSOR_SIGNATURE ??= 'safepay-raast'
  const parsed = SETTINGS.safeParse(given)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new SettingError(String(issue?.path[0] ?? '?'), issue?.message ?? 'is invalid')
  }
  for (const [name, problem] of mismatches(parsed.data)) throw new SettingError(name, problem)
  return parsed.data
}

const REQUIRED_BY = {
  sandbox: [],
  http: ['PROCESSOR_URL', 'PROCESSOR_API_KEY', 'PROCESSOR_WEBHOOK_SECRETS'],
  'safepay-raast': [
    'SAFEPAY_AGGREGATOR_ID',
    'SAFEPAY_MERCHANT_ID',
    'SAFEPAY_SECRET_KEY',
    'PROCESSOR_WEBHOOK_SECRETS',
  ],
  manual: ['MANUAL_PAYMENT_INSTRUCTIONS', 'PROCESSOR_WEBHOOK_SECRETS'],
} as const satisfies Record<Config['PROCESSOR'], readonly (keyof Config)[]>

/** Settings that are valid one by one but not together, each with its problem. */
function* mismatches(config: Config): Generator<[keyof Config, string]> {
  const { DATABASE_URL, EXPORT_STORAGE, SEAL_STORAGE, PROCESSOR, NODE_ENV } = config
  const missing = <Name extends keyof Config>(...names: Name[]) => names.filter((name) => !config[name])

  // A click must be kept as long as an order may name it, even one whose stored body is processed again.
  const { CLICK_RETENTION_DAYS, RAW_EVENT_RETENTION_DAYS } = config
  const least = MAX_ATTRIBUTION_DAYS + RAW_EVENT_RETENTION_DAYS + LATE_ORDER_DAYS
  if (CLICK_RETENTION_DAYS !== 0 && CLICK_RETENTION_DAYS < least) {
    yield [
      'CLICK_RETENTION_DAYS',
      `must be 0, or at least ${least} with RAW_EVENT_RETENTION_DAYS=${RAW_EVENT_RETENTION_DAYS}: orders name clicks that late`,
    ]
  }
  if (mailMode(config) === 'smtp' && !config.MAIL_FROM) {
    yield ['MAIL_FROM', 'must be set with SMTP_URL: the address that mail comes from']
  }
  if (config.REQUIRE_VERIFIED_EMAIL && mailMode(config) === 'off') {
    yield ['REQUIRE_VERIFIED_EMAIL', 'needs SMTP_URL, or no account could verify its address']
  }
  for (const name of ['DATABASE_DIRECT_URL', 'DATABASE_READ_URL'] as const) {
    if (config[name] !== undefined && sqliteFileOf(DATABASE_URL) !== null)
      yield [name, 'is for PostgreSQL, and DATABASE_URL names an SQLite file']
  }
  if (EXPORT_STORAGE === 's3') {
    for (const name of missing('S3_BUCKET', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'))
      yield [name, 'must be set when EXPORT_STORAGE=s3']
  }
  if (SEAL_STORAGE?.startsWith('s3://')) {
    for (const name of missing('S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'))
      yield [name, 'must be set when SEAL_STORAGE is an s3:// address']
  }
  if (NODE_ENV === 'production') yield* unfitForProduction(config)
  for (const name of missing(...REQUIRED_BY[PROCESSOR]))
    yield [name, `must be set when PROCESSOR=${PROCESSOR}`]
  if (
    (PROCESSOR === 'sandbox' || PROCESSOR === 'manual') &&
    config.PROCESSOR_SIGNATURE !== 'standard-webhooks'
  ) {
    const signer = PROCESSOR === 'sandbox' ? 'the sandbox signs' : '"affiliate manual" signs'
    yield ['PROCESSOR_SIGNATURE', `must be standard-webhooks, which is how ${signer}`]
  }
  if (PROCESSOR === 'manual' && config.PROCESSOR_EVENTS !== undefined) {
    yield ['PROCESSOR_EVENTS', 'must not be set when PROCESSOR=manual: its events have the built-in types']
  }
}

function* unfitForProduction(config: Config): Generator<[keyof Config, string]> {
  if (config.PROCESSOR === 'sandbox') {
    yield [
      'PROCESSOR',
      'the sandbox moves no real money and is refused in production; set http, safepay-raast or manual',
    ]
  }
  if (!config.APP_KEY) yield ['APP_KEY', 'must be set in production: 32 random bytes in base64']
  if (!config.PUBLIC_BASE_URL && config.ROLES.includes('web')) {
    yield [
      'PUBLIC_BASE_URL',
      'must be set in production: the https address of this service, which affiliate links start with',
    ]
  }
  if (config.TRUST_PROXY === 'true') {
    yield [
      'TRUST_PROXY',
      'true is refused in production, since every client could then choose its address: set the number of proxies in front (such as 1) or their addresses',
    ]
  }
  for (const name of ['PUBLIC_BASE_URL', 'PROCESSOR_URL', 'SAFEPAY_URL'] as const) {
    const { protocol, hostname } = new URL(config[name] ?? 'https://none')
    if (protocol !== 'https:' && !isLoopbackHost(hostname))
      yield [name, 'must be an https address in production, unless it is on this machine']
  }
}
