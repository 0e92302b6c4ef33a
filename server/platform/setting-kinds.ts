import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { z } from 'zod'
import { parseMoney } from '../../shared/money.ts'
import { percentToBasisPoints } from '../../shared/rates.ts'
import { addressProblem } from './database/postgres-address.ts'
import { isLoopbackHost } from './network/loopback.ts'

// The kinds of settings: each reads the text of an environment variable, or says what it must be.

/** A setting that `read` makes of its text; without a result it says what it must be. */
function parsed<Value>(mustBe: string, read: (text: string) => Value | null) {
  return z.string().transform((text, context): Value => {
    const value = read(text)
    if (value !== null) return value
    context.addIssue({ code: 'custom', message: `must be ${mustBe}` })
    return z.NEVER
  })
}

/** A text that fits. */
const matching = (mustBe: string, fits: (text: string) => boolean) =>
  z.string().refine(fits, `must be ${mustBe}`)

/** Its parts, separated by commas. */
const partsOf = (text: string) => text.split(',').map((part) => part.trim())

export const money = parsed('an amount in rupees such as 1000.00', (text) => {
  const amount = parseMoney(text)
  return amount !== null && amount >= 0 ? amount : null
})

const percentage = parsed('a percentage from 0 to 100 with at most two decimals', (text) => {
  const basisPoints = /^\d+(\.\d+)?$/.test(text) ? percentToBasisPoints(Number(text)) : null
  return basisPoints !== null && basisPoints <= 10_000 ? basisPoints : null
})

/** In basis points; `preset` is the default, in percent. */
export const rate = (preset: number) => percentage.prefault(String(preset))

export const text = z.string().min(1)

/** Part of a mail's sender and of an `otpauth:` label, which a colon would end. */
export const displayName = parsed('a name of 1 to 60 characters without a colon', (text) => {
  const name = text.trim()
  return /^[^:\p{Cc}\u202A-\u202E\u2066-\u2069]{1,60}$/u.test(name) ? name : null
})

/** Text of several lines: `\n`, as environment files write it, is a line break. */
export const instructions = parsed('text of 1 to 2000 characters', (text) => {
  const lines = text.replaceAll('\\n', '\n').trim()
  return lines.length >= 1 && lines.length <= 2000 && !/[^\P{Cc}\n]/u.test(lines) ? lines : null
})

/** One of these words; the first is the default. */
export const choice = <const Word extends string>(preset: Word, ...others: Word[]) =>
  z.enum([preset, ...others]).default(() => preset as never)

export const wholeNumber = (least: number, most: number) =>
  parsed(`a whole number from ${least} to ${most}`, (text) => {
    const value = Number(text)
    return /^\d+$/.test(text) && value >= least && value <= most ? value : null
  })

export const whole = (least: number, most: number, preset: number) =>
  wholeNumber(least, most).prefault(String(preset))

/** Paths are appended to it, so it has no query and no fragment. A password in it would reach logs and links. */
export const httpUrl = matching('an http or https address without user, query and fragment', (text) => {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  return url !== null && !/[?#]/.test(text) && url.username === '' && url.password === ''
}).transform((text) => text.replace(/\/+$/, ''))

export const timeZone = matching('a time zone such as Asia/Karachi', (zone) => {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
})

const PROCESS_ROLES = ['web', 'worker', 'scheduler'] as const
type ProcessRole = (typeof PROCESS_ROLES)[number]

export const roles = parsed(`one or more of ${PROCESS_ROLES.join(', ')}`, (text) => {
  const names = partsOf(text)
  const known = names.filter((name): name is ProcessRole => PROCESS_ROLES.includes(name as ProcessRole))
  return known.length === names.length ? [...new Set(known)] : null
})

/** Loads node-cron only for a schedule that is not the default, to keep commands fast. */
function isSchedule(text: string): boolean {
  const cron: typeof import('node-cron') = createRequire(import.meta.url)('node-cron')
  return text.trim().split(/\s+/).length === 5 && cron.validate(text)
}

export const cronOrOff = matching(
  'off, or five cron fields that match at least one day',
  (text) => text === 'off' || isSchedule(text),
)

/** `sqlite:PATH`, `sqlite:///ABSOLUTE` or a PostgreSQL address. Not `:memory:`: each process opens the file twice. */
export const databaseUrl = z.string().superRefine((text, context) => {
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/s.exec(text)?.[1]
  const isFile = file !== undefined && file !== ':memory:' && !/^\/\/|\/$|\0/.test(file)
  if (!isFile) refuseAddress(text, 'must be sqlite:PATH of a file or postgres://…', context)
})

export const postgresUrl = z.string().superRefine((text, context) => {
  refuseAddress(text, 'must be postgres://…', context)
})

function refuseAddress(text: string, mustBe: string, context: z.RefinementCtx): void {
  const problem = /^postgres(ql)?:\/\/./.test(text) ? addressProblem(text) : mustBe
  if (problem !== null) context.addIssue({ code: 'custom', message: problem })
}

/** A replica. With several hosts the driver would look for the primary among them. */
export const replicaUrl = postgresUrl.refine(
  (text) => !/^[^/]*\/\/[^/?]*,|[?&]target_session_attrs=/.test(text),
  'must name one host, without target_session_attrs; put a load balancer in front of several replicas',
)

const proxyAddress = z.union([
  // Names of address ranges that the web server accepts besides addresses and networks.
  z.enum(['loopback', 'linklocal', 'uniquelocal']),
  matching('an address', (text) => isIP(text) !== 0),
  z.cidrv4(),
  z.cidrv6(),
])

/** A number of hops as a number, anything else as text. */
export const proxies = z
  .string()
  .transform(partsOf)
  .refine(
    ([first = '', ...more]) =>
      (more.length === 0 && /^(?:[1-9]|10|true|false)$/.test(first)) ||
      [first, ...more].every((part) => proxyAddress.safeParse(part).success),
    'must be the number of proxies in front (1 to 10), or their addresses and networks separated by commas',
  )
  .transform((parts) => (/^\d+$/.test(parts[0] ?? '') ? Number(parts[0]) : parts.join(',')))

export const host = matching(
  'an address or a host name, without a port',
  (text) => isIP(text) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text),
)

/** Buffer.from skips characters that are not base64, so a mistyped key would silently become another key. */
export const appKey = z.string().regex(/^[A-Za-z0-9+/_-]{43}=?$/, 'must be 32 bytes in base64')

const list = z.string().transform((text) => partsOf(text).filter(Boolean))

export const networks = list.pipe(z.array(proxyAddress))

export const formerKeys = list.pipe(z.array(appKey))

export const flag = z.enum(['true', 'false'], 'must be true or false').transform((text) => text === 'true')

/** Secrets separated by commas, at least one. */
export const secrets = list.refine((parts) => parts.length > 0, 'must hold at least one secret')

/** Titles separated by commas; may be none. */
export const titles = list

/** As a browser sends it: scheme, host and any port other than the scheme's default. */
export const origins = z
  .string()
  .transform((text) => [...new Set(partsOf(text))])
  .refine(
    (parts) =>
      parts.every((part) => /^https?:\/\/[a-z0-9.:[\]-]+$/.test(part) && URL.parse(part)?.origin === part),
    'must be origins such as https://app.example.com, separated by commas, without a trailing slash',
  )

export const bearerToken = matching('at least 16 characters without spaces', (text) =>
  /^[\x21-\x7e]{16,}$/.test(text),
)

/** An id or key of Safepay, which goes into a path or header. */
export const safepayToken = z.string().regex(/^[A-Za-z0-9_-]{4,200}$/, 'must be letters, digits, "_" and "-"')

/** Stands in a line of its own, so it holds no control characters. */
export const contactAddress = matching(
  'an https or mailto address, such as mailto:security@example.com',
  (text) => /^(?:https:\/\/|mailto:)[\x21-\x7e]+$/.test(text) && URL.canParse(text),
)

export const sealStorage = matching('s3://BUCKET/PREFIX or a folder', (text) =>
  /^(?!.*:\/\/)|^s3:\/\/[a-z0-9][a-z0-9.-]+[a-z0-9](\/[^\s?#]*)?$/s.test(text),
)

/** Where mail goes: how to reach a mail server. */
export interface MailServer {
  host: string
  port: number
  /** TLS from the start (`smtps://`). */
  secure: boolean
  /** Send nothing unless the connection is encrypted. */
  requireTls: boolean
  user: string | null
  password: string | null
}

/** `off`, or `smtp://USER:PASSWORD@HOST:PORT` or `smtps://…`. The mail server must offer TLS unless it is on this machine or `?tls=optional` is added. */
export const smtpUrl = parsed(
  'off, or smtp://USER:PASSWORD@HOST:PORT or smtps://…, with at most ?tls=optional',
  (text): 'off' | MailServer | null => {
    if (text === 'off') return 'off'
    const url = /^smtps?:\/\//i.test(text) ? URL.parse(text) : null
    const isPlain = url && (url.search === '' || url.search === '?tls=optional') && url.hash === ''
    if (!url || !isPlain || url.hostname === '' || !/^\/?$/.test(url.pathname)) return null
    const secure = url.protocol === 'smtps:'
    const host = url.hostname.replace(/^\[|\]$/g, '')
    return {
      host,
      port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
      secure,
      requireTls: !secure && url.search === '' && !isLoopbackHost(host),
      user: url.username === '' ? null : decoded(url.username),
      password: url.password === '' ? null : decoded(url.password),
    }
  },
)

/** A password with a "%" that begins no escape is taken as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export interface Mailbox {
  name: string
  address: string
}

/** `ADDRESS` or `NAME <ADDRESS>`. */
export const mailbox = parsed('an address such as Shop <no-reply@example.com>', (text): Mailbox | null => {
  const named = /^([^<>\p{Cc}]*)<([^<>]+)>$/u.exec(text.trim())
  const address = (named?.[2] ?? text).trim()
  const name = (named?.[1] ?? '').trim().replace(/^"(.*)"$/, '$1')
  return /^[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/.test(address) ? { name, address } : null
})
