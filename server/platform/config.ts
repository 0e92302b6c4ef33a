import { dirname } from 'node:path'
import { z } from 'zod'
import { isLoopbackHost } from './network/loopback.ts'
import { exampleHostIn, placeholderIn } from './placeholder.rule.ts'
import { SETTING_GROUPS } from './settings.ts'

export interface SettingFault {
  name: string
  problem: string
}

/** Invalid settings: they stop startup, with one line for each that names it. */
export class SettingError extends Error {
  readonly faults: readonly SettingFault[]

  constructor(name: string, problem: string, others: readonly SettingFault[] = []) {
    const faults = [{ name, problem }, ...others]
    super(faults.map((fault) => `setting ${fault.name}: ${fault.problem}`).join('\n'))
    this.name = 'SettingError'
    this.faults = faults
  }
}

/** Throws `SettingError` with all of these faults, if there are any. */
export function refuseFaults([first, ...others]: readonly SettingFault[]): void {
  if (first) throw new SettingError(first.name, first.problem, others)
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

/** Where mails and pages lead people back to: APP_URL, else the portal of the service; `null` without either. */
export function homeOf(platform: { config: Pick<Config, 'APP_URL' | 'PORTAL'>; publicBaseUrl: string }) {
  const { APP_URL, PORTAL } = platform.config
  return APP_URL ?? (PORTAL === 'on' ? `${platform.publicBaseUrl}/app` : null)
}

type Environment = Record<string, string | undefined>

/** Reads the settings from an environment. Throws `SettingError` that names every invalid one. */
export function readConfig(environment: Environment): Config {
  const { config, faults } = examineConfig(environment)
  refuseFaults(faults)
  return config
}

/** The settings of an environment with at most one fault for each. In the place of an invalid one stands its default. */
export function examineConfig(environment: Environment): { config: Config; faults: SettingFault[] } {
  const given: Record<string, string> = {}
  for (const name of SETTING_NAMES) {
    const text = environment[name]
    if (text !== undefined && text !== '') given[name] = text
  }
  if (given.PROCESSOR === 'safepay-raast') given.PROCESSOR_SIGNATURE ??= 'safepay-raast'
  const faults = leftPlaceholders(given)
  for (const { path, message } of SETTINGS.safeParse(given).error?.issues ?? []) {
    const name = String(path[0])
    if (!faults.has(name)) faults.set(name, message)
  }
  const valid = Object.fromEntries(Object.entries(given).filter(([name]) => !faults.has(name)))
  const config = SETTINGS.parse(valid)
  const invalid = new Set(faults.keys())
  for (const [name, problem, because = name] of mismatches(config)) {
    if (!faults.has(name) && !invalid.has(because)) faults.set(name, problem)
  }
  return { config, faults: [...faults].map(([name, problem]) => ({ name, problem })) }
}

/** What an example left to be replaced, by setting. Hosts of documentation are refused in production only. */
function leftPlaceholders(given: Record<string, string>): Map<string, string> {
  const faults = new Map<string, string>()
  for (const [name, text] of Object.entries(given)) {
    const word = placeholderIn(text)
    const host = given.NODE_ENV === 'production' ? exampleHostIn(text) : null
    if (word !== null) faults.set(name, `still holds the placeholder "${word}"; set a value of your own`)
    else if (host !== null) faults.set(name, `names ${host}, a host for examples; set one of your own`)
  }
  return faults
}

/** What each processor needs. */
export const REQUIRED_BY = {
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

/** A setting, its problem, and the other setting that makes it one. */
type Mismatch = [name: keyof Config, problem: string, because?: keyof Config]

/** Settings that are valid one by one but not together. */
function* mismatches(config: Config): Generator<Mismatch> {
  const { DATABASE_URL, EXPORT_STORAGE, SEAL_STORAGE, PROCESSOR, NODE_ENV } = config
  const missing = <Name extends keyof Config>(...names: Name[]) => names.filter((name) => !config[name])

  // A click must be kept as long as an order may name it, even one whose stored body is processed again.
  const { CLICK_RETENTION_DAYS, RAW_EVENT_RETENTION_DAYS } = config
  const least = MAX_ATTRIBUTION_DAYS + RAW_EVENT_RETENTION_DAYS + LATE_ORDER_DAYS
  if (CLICK_RETENTION_DAYS !== 0 && CLICK_RETENTION_DAYS < least) {
    yield [
      'CLICK_RETENTION_DAYS',
      `must be 0, or at least ${least} with RAW_EVENT_RETENTION_DAYS=${RAW_EVENT_RETENTION_DAYS}: orders name clicks that late`,
      'RAW_EVENT_RETENTION_DAYS',
    ]
  }
  if (mailMode(config) === 'smtp' && !config.MAIL_FROM) {
    yield ['MAIL_FROM', 'must be set with SMTP_URL: the address that mail comes from']
  }
  if (config.REQUIRE_VERIFIED_EMAIL && mailMode(config) === 'off') {
    yield ['REQUIRE_VERIFIED_EMAIL', 'needs SMTP_URL, or no account could verify its address', 'SMTP_URL']
  }
  for (const name of ['DATABASE_DIRECT_URL', 'DATABASE_READ_URL'] as const) {
    if (config[name] !== undefined && sqliteFileOf(DATABASE_URL) !== null)
      yield [name, 'is for PostgreSQL, and DATABASE_URL names an SQLite file', 'DATABASE_URL']
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
    yield ['PROCESSOR_SIGNATURE', `must be standard-webhooks, which is how ${signer}`, 'PROCESSOR']
  }
  if (PROCESSOR === 'manual' && config.PROCESSOR_EVENTS !== undefined) {
    const problem = 'must not be set when PROCESSOR=manual: its events have the built-in types'
    yield ['PROCESSOR_EVENTS', problem, 'PROCESSOR']
  }
}

function* unfitForProduction(config: Config): Generator<Mismatch> {
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
      'ROLES',
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
