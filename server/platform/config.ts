import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { dirname } from 'node:path'
import { z } from 'zod'
import { parseMoney } from '../../shared/money.ts'
import { percentToBasisPoints } from '../../shared/rates.ts'
import { isLoopbackHost } from './network/loopback.ts'

/** An invalid setting: stops startup with one line that names it. */
export class SettingError extends Error {
  constructor(name: string, problem: string) {
    super(`setting ${name}: ${problem}`)
    this.name = 'SettingError'
  }
}

const money = z.string().transform((text, context) => {
  const amount = parseMoney(text)
  if (amount !== null && amount >= 0) return amount
  context.addIssue({ code: 'custom', message: 'must be an amount in rupees such as 1000.00' })
  return z.NEVER
})

const rate = z.string().transform((text, context) => {
  const basisPoints = /^\d+(\.\d+)?$/.test(text) ? percentToBasisPoints(Number(text)) : null
  if (basisPoints !== null && basisPoints <= 10_000) return basisPoints
  context.addIssue({
    code: 'custom',
    message: 'must be a percentage from 0 to 100 with at most two decimals',
  })
  return z.NEVER
})

const whole = (least: number, most: number) =>
  z.string().transform((text, context) => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= least && value <= most) return value
    context.addIssue({ code: 'custom', message: `must be a whole number from ${least} to ${most}` })
    return z.NEVER
  })

/** Paths are appended to it, so it has no query and no fragment. A password in it would reach logs and links. */
const httpUrl = z
  .string()
  .refine((text) => {
    const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
    return url !== null && !/[?#]/.test(text) && url.username === '' && url.password === ''
  }, 'must be an http or https address without user, query and fragment')
  .transform((text) => text.replace(/\/+$/, ''))

const timeZone = z.string().refine((zone) => {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}, 'must be a time zone such as Asia/Karachi')

const roles = z.string().transform((text, context) => {
  const names = text.split(',').map((name) => name.trim())
  const known = names.filter((name): name is ProcessRole => PROCESS_ROLES.includes(name as ProcessRole))
  if (known.length === names.length && known.length > 0) return [...new Set(known)]
  context.addIssue({ code: 'custom', message: `must be one or more of ${PROCESS_ROLES.join(', ')}` })
  return z.NEVER
})

export const PROCESS_ROLES = ['web', 'worker', 'scheduler'] as const
export type ProcessRole = (typeof PROCESS_ROLES)[number]

/** Loads node-cron only for a schedule that is not the default, to keep commands fast. */
function isSchedule(text: string): boolean {
  const cron: typeof import('node-cron') = createRequire(import.meta.url)('node-cron')
  return text.trim().split(/\s+/).length === 5 && cron.validate(text)
}

const cronOrOff = z
  .string()
  .refine(
    (text) => text === 'off' || isSchedule(text),
    'must be off, or five cron fields that match at least one day',
  )

/** The file of a `sqlite:` address (`sqlite:PATH` or `sqlite:///ABSOLUTE`); `null` for any other address. */
export function sqliteFileOf(url: string): string | null {
  return url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : null
}

/** `sqlite:PATH`, `sqlite:///ABSOLUTE` or a PostgreSQL address. Not `:memory:`: each process opens the file twice. */
const databaseUrl = z.string().refine((text) => {
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/s.exec(text)?.[1]
  if (file !== undefined) return file !== ':memory:' && !/^\/\/|\/$|\0/.test(file)
  return /^postgres(ql)?:\/\/./.test(text) && URL.canParse(text.replace('@/', '@socket/'))
}, 'must be sqlite:PATH of a file or postgres://…')

/** Names of address ranges that the web server accepts besides addresses and networks. */
const PROXY_NETWORKS = ['loopback', 'linklocal', 'uniquelocal']

function isProxyAddress(text: string): boolean {
  if (PROXY_NETWORKS.includes(text)) return true
  const [address = '', bits, ...more] = text.split('/')
  const family = isIP(address)
  if (family === 0 || more.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

const MAX_PROXY_HOPS = 10

/** A number of hops as a number, anything else as text. */
const proxies = z
  .string()
  .transform((text) => text.split(',').map((part) => part.trim()))
  .refine(
    (parts) => parts.every(isProxyAddress) || (parts.length === 1 && isProxyWord(parts[0] ?? '')),
    `must be the number of proxies in front (1 to ${MAX_PROXY_HOPS}), or their addresses and networks separated by commas`,
  )
  .transform((parts) => (/^\d+$/.test(parts[0] ?? '') ? Number(parts[0]) : parts.join(',')))

function isProxyWord(text: string): boolean {
  if (/^\d{1,2}$/.test(text)) return Number(text) >= 1 && Number(text) <= MAX_PROXY_HOPS
  return text === 'true' || text === 'false'
}

const host = z
  .string()
  .refine(
    (text) => isIP(text) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text),
    'must be an address or a host name, without a port',
  )

/** Buffer.from skips characters that are not base64, so a mistyped key would silently become another key. */
const appKey = z.string().refine((text) => /^[A-Za-z0-9+/_-]{43}=?$/.test(text), 'must be 32 bytes in base64')

const formerKeys = z
  .string()
  .transform((text) =>
    text
      .split(',')
      .map((part) => part.trim())
      .filter(Boolean),
  )
  .pipe(z.array(appKey))

const flag = z
  .string()
  .refine((text) => text === 'true' || text === 'false', 'must be true or false')
  .transform((text) => text === 'true')

/** As a browser sends it: scheme, host and any port other than the scheme's default. */
const origins = z
  .string()
  .transform((text) => [...new Set(text.split(',').map((part) => part.trim()))])
  .refine(
    (parts) =>
      parts.every((part) => /^https?:\/\/[a-z0-9.:[\]-]+$/.test(part) && URL.parse(part)?.origin === part),
    'must be origins such as https://app.example.com, separated by commas, without a trailing slash',
  )

const bearerToken = z
  .string()
  .refine((text) => /^[\x21-\x7e]{16,}$/.test(text), 'must be at least 16 characters without spaces')

const sealStorage = z
  .string()
  .refine(
    (text) => !text.includes('://') || /^s3:\/\/[a-z0-9][a-z0-9.-]+[a-z0-9](\/[^\s?#]*)?$/.test(text),
    'must be s3://BUCKET/PREFIX or a folder',
  )

/** Stands in a line of its own, so it holds no control characters. */
const contact = z
  .string()
  .refine(
    (text) => /^(?:https:\/\/|mailto:)[\x21-\x7e]+$/.test(text) && URL.canParse(text),
    'must be an https or mailto address, such as mailto:security@example.com',
  )

const SETTINGS = z.object({
  /** A typo would switch the production rules off, so only these values are accepted. */
  NODE_ENV: z.enum(['development', 'test', 'production']).default('development'),
  HOST: host.default('127.0.0.1'),
  PORT: whole(0, 65_535).default(3000),
  PUBLIC_BASE_URL: httpUrl.optional(),
  DATABASE_URL: databaseUrl.default('sqlite:./data/affiliate.db'),
  /** The folder of keys and the sandbox's state; by default the SQLite file's folder, or `./data` with PostgreSQL. */
  DATA_DIR: z.string().min(1).optional(),
  APP_KEY: appKey.optional(),
  /** Keys that APP_KEY has replaced, comma-separated. They only decrypt. */
  APP_KEYS_FORMER: formerKeys.default([]),
  ROLES: roles.default([...PROCESS_ROLES]),
  PROCESSOR: z.enum(['sandbox', 'http']).default('sandbox'),
  PROCESSOR_URL: httpUrl.optional(),
  PROCESSOR_API_KEY: z.string().min(1).optional(),
  PROCESSOR_SIGNATURE: z
    .enum(['standard-webhooks', 'safepay-raast', 'safepay-v2', 'hmac'])
    .default('standard-webhooks'),
  PROCESSOR_SIGNATURE_HMAC: z.string().optional(),
  PROCESSOR_WEBHOOK_SECRETS: z
    .string()
    .transform((text) =>
      text
        .split(',')
        .map((secret) => secret.trim())
        .filter(Boolean),
    )
    .refine((secrets) => secrets.length > 0, 'must hold at least one secret')
    .optional(),
  PROCESSOR_EVENTS: z.string().optional(),
  PROCESSOR_TIMEOUT_MS: whole(100, 120_000).default(10_000),
  PLATFORM_FEE_RATE: rate.default(1000),
  PAYOUT_THRESHOLD: money.default(100_000),
  HIGH_COMMISSION_RATE: rate.default(3000),
  /** Flags a link with this many visits from one address within FLAG_CLICKS_SECONDS; 0 = off. */
  FLAG_CLICKS: whole(0, 1_000_000).default(100),
  FLAG_CLICKS_SECONDS: whole(10, 3600).default(600),
  /** Flags a link at this rate of accepted sales per visit, from FLAG_CONVERSION_VISITS visits on. */
  FLAG_CONVERSION_RATE: rate.default(3000),
  FLAG_CONVERSION_VISITS: whole(1, 1_000_000).default(50),
  /** Flags a link with this many visits and no accepted sale; 0 = off. */
  FLAG_CONVERSION_NONE: whole(0, 1_000_000_000).default(5000),
  FLAG_CONVERSION_DAYS: whole(1, 90).default(14),
  /** Flags a creator with this many orders through their own link within FLAG_SELF_PURCHASES_DAYS. */
  FLAG_SELF_PURCHASES: whole(1, 1_000_000).default(1),
  FLAG_SELF_PURCHASES_DAYS: whole(1, 365).default(30),
  /** Flags a store with this many rejected orders with a tracking reference within FLAG_REJECTED_SALES_HOURS … */
  FLAG_REJECTED_SALES: whole(1, 1_000_000).default(20),
  /** … if they are also this share of all its orders with one. */
  FLAG_REJECTED_SALES_RATE: rate.default(5000),
  FLAG_REJECTED_SALES_HOURS: whole(1, 720).default(24),
  /** Flags fewer rejections too, from this many on, if their share is FLAG_REJECTED_SALES_TIMES the store's share of 30 days; 0 = off. */
  FLAG_REJECTED_SALES_LEAST: whole(0, 1_000_000).default(5),
  FLAG_REJECTED_SALES_TIMES: whole(2, 1000).default(4),
  /** Flags a click that more accepted orders than this name. */
  FLAG_ORDERS_PER_CLICK: whole(1, 1_000_000).default(3),
  /** Flags a link with this many expected sales in FLAG_CONVERSION_DAYS and less than a tenth of them accepted; 0 = off. */
  FLAG_CONVERSION_DROP_SALES: whole(0, 1_000_000).default(10),
  /** Flags an offer, paused or ended, with this many untracked visits within a day after at least as many tracked ones; 0 = off. */
  FLAG_PAUSED_VISITS: whole(0, 1_000_000_000).default(50),
  /** Flags an order with this many days from creation to payment; 0 = off. */
  FLAG_ORDER_AGE_DAYS: whole(0, 3650).default(90),
  FLAG_CYCLE_UNPAID_DAYS: whole(1, 365).default(14),
  BILLING_PERIOD: z.enum(['monthly', 'weekly', 'daily']).default('monthly'),
  BILLING_TIMEZONE: timeZone.default('Asia/Karachi'),
  SCHEDULE_BILLING: cronOrOff.default('5 0 * * *'),
  SCHEDULE_PAYOUTS: cronOrOff.default('*/15 * * * *'),
  /** When invoices and payouts are compared with the processor's records. */
  SCHEDULE_RECONCILIATION: cronOrOff.default('35 4 * * *'),
  TRACKING_PARAMETER: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_-]{0,39}$/, 'must be a plain query parameter name')
    .default('aff_ref'),
  /** The proxies that may name the client: their number or their addresses. */
  TRUST_PROXY: proxies.optional(),
  /** Log-ins, registrations and other password attempts a minute from one address; 0 = off, for accounts too. */
  RATE_LIMIT_AUTH: whole(0, 1_000_000).default(20),
  /** Calls of the other public routes a minute from one address; 0 = off. */
  RATE_LIMIT_PUBLIC: whole(0, 1_000_000).default(600),
  /** Calls a minute with one account's tokens, over REST and tRPC; 0 = off. */
  RATE_LIMIT_USER: whole(0, 1_000_000).default(300),
  /** Per store and process; counts validly signed first deliveries. 0 = no limit. */
  WEBHOOK_EVENTS_PER_MINUTE: whole(0, 1_000_000_000).default(120_000),
  WEBHOOK_BYTES_PER_MINUTE: whole(0, 1_000_000_000_000).default(1_500_000_000),
  /** Open live streams of one process: of all users, and of one. Accounts without a sale share half of them. */
  LIVE_STREAMS: whole(0, 100_000).default(500),
  LIVE_STREAMS_PER_USER: whole(1, 1000).default(5),
  /** Origins of web pages that may call the API from a browser; by default only the service's own. */
  CORS_ORIGINS: origins.optional(),
  /** The bearer token for /metrics. Without it /metrics answers on loopback only, and not at all in production. */
  METRICS_TOKEN: bearerToken.optional(),
  /** Where to report a vulnerability, for /.well-known/security.txt. */
  SECURITY_CONTACT: contact.optional(),
  RAW_EVENT_RETENTION_DAYS: whole(1, 3650).default(90),
  /** Older clicks are deleted, on PostgreSQL by whole months; 0 = keep all. */
  CLICK_RETENTION_DAYS: whole(0, 36_500).default(0),
  /** The storage of export files: the folder `exports` in DATA_DIR, or an S3 bucket. */
  EXPORT_STORAGE: z.enum(['local', 's3']).default('local'),
  /** Write-once storage for copies of the journal's seals: `s3://BUCKET/PREFIX`, or a folder outside DATA_DIR. */
  SEAL_STORAGE: sealStorage.optional(),
  /** Not needed for AWS. */
  S3_ENDPOINT: httpUrl.optional(),
  S3_REGION: z.string().min(1).default('us-east-1'),
  S3_BUCKET: z.string().min(1).optional(),
  S3_ACCESS_KEY_ID: z.string().min(1).optional(),
  S3_SECRET_ACCESS_KEY: z.string().min(1).optional(),
  /** Puts the bucket into the path instead of the host name, as most servers other than AWS need it. */
  S3_FORCE_PATH_STYLE: flag.default(false),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
})

/** The longest attribution window of an offer. */
const MAX_ATTRIBUTION_DAYS = 365
/** For late orders and repeated deliveries. */
const LATE_ORDER_DAYS = 31

export type Config = Readonly<z.infer<typeof SETTINGS>>

export const SETTING_NAMES: readonly string[] = Object.keys(SETTINGS.shape)

/** The folder of keys, exports and the sandbox's state: DATA_DIR, else the SQLite file's folder, else `./data`. */
export function dataFolder(config: Pick<Config, 'DATA_DIR' | 'DATABASE_URL'>): string {
  if (config.DATA_DIR) return config.DATA_DIR
  const file = sqliteFileOf(config.DATABASE_URL)
  return file === null ? './data' : dirname(file)
}

/** Reads the settings from an environment. Throws `SettingError` for the first invalid one. */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(
    Object.keys(SETTINGS.shape)
      .filter((name) => environment[name] !== undefined && environment[name] !== '')
      .map((name) => [name, environment[name]]),
  )
  const parsed = SETTINGS.safeParse(given)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new SettingError(String(issue?.path[0] ?? '?'), issue?.message ?? 'is invalid')
  }
  refuseMismatch(parsed.data)
  return parsed.data
}

/** Refuses settings that are valid one by one but not together. */
function refuseMismatch(config: Config): void {
  refuseShortClickRetention(config)
  if (config.EXPORT_STORAGE === 's3') {
    for (const name of ['S3_BUCKET', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const) {
      if (!config[name]) throw new SettingError(name, 'must be set when EXPORT_STORAGE=s3')
    }
  }
  if (config.SEAL_STORAGE?.startsWith('s3://')) {
    for (const name of ['S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const) {
      if (!config[name]) throw new SettingError(name, 'must be set when SEAL_STORAGE is an s3:// address')
    }
  }
  if (config.NODE_ENV === 'production') {
    if (config.PROCESSOR === 'sandbox') {
      throw new SettingError(
        'PROCESSOR',
        'the sandbox moves no real money and is refused in production; set http',
      )
    }
    if (!config.APP_KEY) {
      throw new SettingError('APP_KEY', 'must be set in production: 32 random bytes in base64')
    }
    refuseOpenToTheNetwork(config)
  }
  if (config.PROCESSOR === 'http') {
    for (const name of ['PROCESSOR_URL', 'PROCESSOR_API_KEY', 'PROCESSOR_WEBHOOK_SECRETS'] as const) {
      if (!config[name]) throw new SettingError(name, `must be set when PROCESSOR=${config.PROCESSOR}`)
    }
  } else if (config.PROCESSOR_SIGNATURE !== 'standard-webhooks') {
    throw new SettingError('PROCESSOR_SIGNATURE', 'must be standard-webhooks, which is how the sandbox signs')
  }
}

/** Refuses settings that let clients choose their address, or send secrets unencrypted. */
function refuseOpenToTheNetwork(config: Config): void {
  if (config.TRUST_PROXY === 'true') {
    throw new SettingError(
      'TRUST_PROXY',
      'true is refused in production, since every client could then choose its address: set the number of proxies in front (such as 1) or their addresses',
    )
  }
  for (const name of ['PUBLIC_BASE_URL', 'PROCESSOR_URL'] as const) {
    const address = config[name]
    if (address === undefined) continue
    const { protocol, hostname } = new URL(address)
    if (protocol === 'https:' || isLoopbackHost(hostname)) continue
    throw new SettingError(name, 'must be an https address in production, unless it is on this machine')
  }
}

/** A click must be kept as long as an order may name it, even one whose stored body is processed again. */
function refuseShortClickRetention({ CLICK_RETENTION_DAYS, RAW_EVENT_RETENTION_DAYS }: Config): void {
  const least = MAX_ATTRIBUTION_DAYS + RAW_EVENT_RETENTION_DAYS + LATE_ORDER_DAYS
  if (CLICK_RETENTION_DAYS === 0 || CLICK_RETENTION_DAYS >= least) return
  throw new SettingError(
    'CLICK_RETENTION_DAYS',
    `must be 0, or at least ${least} with RAW_EVENT_RETENTION_DAYS=${RAW_EVENT_RETENTION_DAYS}: orders name clicks that late`,
  )
}
