import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { z } from 'zod'
import { parseMoney } from '../../shared/money.ts'
import { percentToBasisPoints } from '../../shared/rates.ts'
import { isLoopbackHost } from './loopback.ts'

/** A setting that makes no sense: one line that names it, shown to the operator before anything has started. */
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

/** Paths are put behind it, so it has neither query nor fragment; a password in it would reach logs and links. */
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

/** Only loaded for a schedule that is not the default: a command has no other use for it at its start. */
function isSchedule(text: string): boolean {
  const cron: typeof import('node-cron') = createRequire(import.meta.url)('node-cron')
  return text.trim().split(/\s+/).length === 5 && cron.validate(text)
}

const cronOrOff = z
  .string()
  .refine(
    (text) => text === 'off' || isSchedule(text),
    'must be off, or five cron fields that some day fulfils',
  )

/** `sqlite:PATH`, `sqlite:///ABSOLUTE`, or what a PostgreSQL client takes; each process opens a file twice. */
const databaseUrl = z.string().refine((text) => {
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/s.exec(text)?.[1]
  if (file !== undefined) return file !== ':memory:' && !/^\/\/|\/$|\0/.test(file)
  return /^postgres(ql)?:\/\/./.test(text) && URL.canParse(text.replace('@/', '@socket/'))
}, 'must be sqlite:PATH of a file or postgres://…')

/** Words for address ranges that the web server knows besides addresses and networks. */
const PROXY_NETWORKS = ['loopback', 'linklocal', 'uniquelocal']

function isProxyAddress(text: string): boolean {
  if (PROXY_NETWORKS.includes(text)) return true
  const [address = '', bits, ...more] = text.split('/')
  const family = isIP(address)
  if (family === 0 || more.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

/** More proxies in a row than any installation has. */
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

/** Buffer.from leaves out what is no base64, so a mistyped key would pass as another one. */
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

/** Exactly as a browser sends it: scheme, host and, unless it is the scheme's own, port. */
const origins = z
  .string()
  .transform((text) => [...new Set(text.split(',').map((part) => part.trim()))])
  .refine(
    (parts) =>
      parts.every((part) => /^https?:\/\/[a-z0-9.:[\]-]+$/.test(part) && URL.parse(part)?.origin === part),
    'must be origins such as https://app.example.com, with commas between and no slash at the end',
  )

/** Travels in a header, and stands between the Internet and our figures. */
const bearerToken = z
  .string()
  .refine((text) => /^[\x21-\x7e]{16,}$/.test(text), 'must be at least 16 characters without spaces')

const sealStorage = z
  .string()
  .refine(
    (text) => !text.includes('://') || /^s3:\/\/[a-z0-9][a-z0-9.-]+[a-z0-9](\/[^\s?#]*)?$/.test(text),
    'must be s3://BUCKET/PREFIX or a folder',
  )

const SETTINGS = z.object({
  /** A slip here would switch the rules for production off, so only known words pass. */
  NODE_ENV: z.enum(['development', 'test', 'production']).default('development'),
  HOST: host.default('127.0.0.1'),
  PORT: whole(0, 65_535).default(3000),
  PUBLIC_BASE_URL: httpUrl.optional(),
  DATABASE_URL: databaseUrl.default('sqlite:./data/affiliate.db'),
  /** Where keys and the sandbox's state live; unless set beside the SQLite file, or `./data` with PostgreSQL. */
  DATA_DIR: z.string().min(1).optional(),
  APP_KEY: appKey.optional(),
  /** Keys that APP_KEY has replaced, comma-separated: they only open what they sealed. */
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
  /** Visits of one link from one address within FLAG_CLICKS_SECONDS that are one too many; 0 = off. */
  FLAG_CLICKS: whole(0, 1_000_000).default(100),
  FLAG_CLICKS_SECONDS: whole(10, 3600).default(600),
  /** Accepted sales per visit of a link that are out of the ordinary, among at least FLAG_CONVERSION_VISITS visits. */
  FLAG_CONVERSION_RATE: rate.default(3000),
  FLAG_CONVERSION_VISITS: whole(1, 1_000_000).default(50),
  /** Visits of a link without any accepted sale that are out of the ordinary; 0 = off. */
  FLAG_CONVERSION_NONE: whole(0, 1_000_000_000).default(5000),
  FLAG_CONVERSION_DAYS: whole(1, 90).default(14),
  /** Orders of a creator through the own link, within FLAG_SELF_PURCHASES_DAYS. */
  FLAG_SELF_PURCHASES: whole(1, 1_000_000).default(1),
  FLAG_SELF_PURCHASES_DAYS: whole(1, 365).default(30),
  /** Rejected orders with a tracking reference of one store, within FLAG_REJECTED_SALES_HOURS … */
  FLAG_REJECTED_SALES: whole(1, 1_000_000).default(20),
  /** … that are also this part of all its orders with one. */
  FLAG_REJECTED_SALES_RATE: rate.default(5000),
  FLAG_REJECTED_SALES_HOURS: whole(1, 720).default(24),
  /** Fewer rejections are a burst too, from this many on, if their part is FLAG_REJECTED_SALES_TIMES the store's own of 30 days; 0 = off. */
  FLAG_REJECTED_SALES_LEAST: whole(0, 1_000_000).default(5),
  FLAG_REJECTED_SALES_TIMES: whole(2, 1000).default(4),
  /** Accepted orders that name one click; more are out of the ordinary. */
  FLAG_ORDERS_PER_CLICK: whole(1, 1_000_000).default(3),
  /** Accepted sales that a link's visits of FLAG_CONVERSION_DAYS let expect, if it sells less than a tenth of them; 0 = off. */
  FLAG_CONVERSION_DROP_SALES: whole(0, 1_000_000).default(10),
  /** Untracked visits of a paused or ended offer's links within a day, after at least as many tracked ones; 0 = off. */
  FLAG_PAUSED_VISITS: whole(0, 1_000_000_000).default(50),
  /** Days from an order's creation to its payment that are out of the ordinary; 0 = off. */
  FLAG_ORDER_AGE_DAYS: whole(0, 3650).default(90),
  FLAG_CYCLE_UNPAID_DAYS: whole(1, 365).default(14),
  BILLING_PERIOD: z.enum(['monthly', 'weekly', 'daily']).default('monthly'),
  BILLING_TIMEZONE: timeZone.default('Asia/Karachi'),
  SCHEDULE_BILLING: cronOrOff.default('5 0 * * *'),
  SCHEDULE_PAYOUTS: cronOrOff.default('*/15 * * * *'),
  /** When our invoices and payouts are compared with the processor's records. */
  SCHEDULE_RECONCILIATION: cronOrOff.default('35 4 * * *'),
  TRACKING_PARAMETER: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_-]{0,39}$/, 'must be a plain query parameter name')
    .default('aff_ref'),
  /** Which proxies may name the client: how many stand in front, or their addresses. */
  TRUST_PROXY: proxies.optional(),
  /** Log-ins, registrations and other password attempts a minute from one address; 0 = off, also per account. */
  RATE_LIMIT_AUTH: whole(0, 1_000_000).default(20),
  /** Calls of the other public routes a minute from one address; 0 = off. */
  RATE_LIMIT_PUBLIC: whole(0, 1_000_000).default(600),
  /** Calls a minute with one account's tokens, over REST and tRPC; 0 = off. */
  RATE_LIMIT_USER: whole(0, 1_000_000).default(300),
  /** Per store and process; only validly signed first deliveries count. 0 is without limit. */
  WEBHOOK_EVENTS_PER_MINUTE: whole(0, 1_000_000_000).default(120_000),
  WEBHOOK_BYTES_PER_MINUTE: whole(0, 1_000_000_000_000).default(1_500_000_000),
  /** Live streams that one process holds open at a time, of all users and of one. Accounts without a sale share half. */
  LIVE_STREAMS: whole(0, 100_000).default(500),
  LIVE_STREAMS_PER_USER: whole(1, 1000).default(5),
  /** The web pages' origins that may call from a browser; unset, none but our own. */
  CORS_ORIGINS: origins.optional(),
  /** The bearer token for /metrics. Unset: loopback only, and no /metrics in production. */
  METRICS_TOKEN: bearerToken.optional(),
  RAW_EVENT_RETENTION_DAYS: whole(1, 3650).default(90),
  /** Clicks older than this go, on PostgreSQL by whole months; 0 = kept for ever. */
  CLICK_RETENTION_DAYS: whole(0, 36_500).default(0),
  /** Where export files are kept: a folder `exports` beside the keys, or a bucket that speaks S3. */
  EXPORT_STORAGE: z.enum(['local', 's3']).default('local'),
  /** Where each seal of the journal is stored as well, write-once: `s3://BUCKET/PREFIX`, or a folder outside DATA_DIR. */
  SEAL_STORAGE: sealStorage.optional(),
  /** Unset for AWS itself. */
  S3_ENDPOINT: httpUrl.optional(),
  S3_REGION: z.string().min(1).default('us-east-1'),
  S3_BUCKET: z.string().min(1).optional(),
  S3_ACCESS_KEY_ID: z.string().min(1).optional(),
  S3_SECRET_ACCESS_KEY: z.string().min(1).optional(),
  /** Whether the bucket stands in the path instead of the host name, as most servers other than AWS want it. */
  S3_FORCE_PATH_STYLE: flag.default(false),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
})

/** As many days as an offer's attribution window may have. */
const LONGEST_ATTRIBUTION_DAYS = 365
/** For an order on its way: the store tells it late, or the delivery is repeated. */
const LATE_ORDER_DAYS = 31

export type Config = Readonly<z.infer<typeof SETTINGS>>

/** Every setting there is. */
export const SETTING_NAMES: readonly string[] = Object.keys(SETTINGS.shape)

/** Reads the settings from an environment. Throws `SettingError` on the first that makes no sense. */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(
    Object.keys(SETTINGS.shape)
      .filter((name) => environment[name] !== undefined && environment[name] !== '')
      .map((name) => [name, environment[name]]),
  )
  const parsed = SETTINGS.safeParse(given)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new SettingError(String(issue?.path[0] ?? '?'), issue?.message ?? 'makes no sense')
  }
  refuseMismatch(parsed.data)
  return parsed.data
}

/** Settings of which each makes sense, but not together. */
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

/** What would let clients choose their address, or secrets and money orders travel unencrypted. */
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

/** A click must outlast every order that may name it, also one whose stored body is read again. */
function refuseShortClickRetention({ CLICK_RETENTION_DAYS, RAW_EVENT_RETENTION_DAYS }: Config): void {
  const least = LONGEST_ATTRIBUTION_DAYS + RAW_EVENT_RETENTION_DAYS + LATE_ORDER_DAYS
  if (CLICK_RETENTION_DAYS === 0 || CLICK_RETENTION_DAYS >= least) return
  throw new SettingError(
    'CLICK_RETENTION_DAYS',
    `must be 0, or at least ${least} with RAW_EVENT_RETENTION_DAYS=${RAW_EVENT_RETENTION_DAYS}: orders name clicks that late`,
  )
}
