import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { parseBoundedJson, UnreadableJson } from '../../platform/bounded-json.ts'

/** Headers by lower-case name. A header that came several times is joined with `, ` or absent. */
export type LowerCaseHeaders = Readonly<Record<string, string | undefined>>

export interface SignedRequest {
  headers: LowerCaseHeaders
  /** The bytes as received: a reserialized body has another MAC. */
  rawBody: Buffer
  /** All valid secrets. Any of them may match, for rotation. */
  secrets: readonly string[]
  /** Epoch ms. */
  now: number
}

/**
 * `deliveryId` is the sender's id of the event, the same on each retry; `null` when the scheme or the body has none, and then only the body
 * identifies a redelivery. `signedAt` in epoch ms is `null` when the scheme signs no time. `reason` is for the log, not for the caller.
 */
export type SignatureVerdict =
  | { ok: true; deliveryId: string | null; signedAt: number | null }
  | { ok: false; reason: string }

export interface SigningInput {
  /** The event id, for schemes with a header for it. */
  deliveryId: string
  rawBody: Buffer
  secret: string
  /** Epoch ms. */
  now: number
}

export interface SignatureScheme {
  /** Lower-case names of the headers that every validly signed request has. */
  requiredHeaders: readonly string[]
  /** Never throws. */
  verify(input: SignedRequest): SignatureVerdict
  /** The headers with which `verify` accepts the body. Throws for a secret with a `secretProblem`. */
  sign(input: SigningInput): Record<string, string>
  /** What is wrong with a configured secret, or `null`. */
  secretProblem(secret: string): string | null
}

export function refused(reason: string): { ok: false; reason: string } {
  return { ok: false, reason }
}

const PLACEHOLDER = /\{[^{}]*\}/g

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,100}$/, 'not a header name')
  .transform((name) => name.toLowerCase())

/**
 * The settings of the `hmac` scheme. `template` is the signed content, made of `{body}`, `{timestamp}` and `{id}`. A time or an id from a
 * header must be part of it: unsigned, it could be replaced in a captured request.
 */
const settingsSchema = z.strictObject({
  template: z.string().max(200).default('{body}'),
  algorithm: z.enum(['sha256', 'sha384', 'sha512']).default('sha256'),
  encoding: z.enum(['hex', 'base64']).default('hex'),
  secret_encoding: z.enum(['text', 'base64', 'hex']).default('text'),
  signature_header: headerName,
  /** `value`: the header is the signature. `pairs`: `t=...,v1=...`, as Stripe sends it. */
  header_form: z.enum(['value', 'pairs']).default('value'),
  signature_key: z.string().min(1).max(20).default('v1'),
  timestamp_key: z.string().min(1).max(20).default('t'),
  /** The text before each signature, such as `sha256=`. */
  prefix: z.string().max(20).default(''),
  /** Separates several signatures in one header (`value` form only); null: exactly one. */
  separator: z.enum([' ', ',']).nullable().default(null),
  /** null in the `pairs` form: the time is a pair of the signature header. */
  timestamp_header: headerName.nullable().default(null),
  timestamp_format: z.enum(['unix_seconds', 'unix_milliseconds', 'rfc3339']).default('unix_seconds'),
  tolerance_seconds: z.int().min(1).max(3600).default(300),
  id_header: headerName.nullable().default(null),
  /** Top-level field of the body that holds the event id; used when there is no `id_header`. */
  id_field: z.string().min(1).max(100).nullable().default(null),
})

export const hmacSettingsSchema = settingsSchema.superRefine((settings, context) => {
  for (const problem of templateProblems(settings)) {
    context.addIssue({ code: 'custom', path: ['template'], message: problem })
  }
})

export type HmacSettings = z.infer<typeof settingsSchema>

function templateProblems(settings: HmacSettings): string[] {
  const placeholders: readonly string[] = settings.template.match(PLACEHOLDER) ?? []
  const known = placeholders.every((name) => ['{body}', '{timestamp}', '{id}'].includes(name))
  const signs = (name: string) => placeholders.includes(name)
  const timed = settings.timestamp_header !== null || settings.header_form === 'pairs'
  return [
    !known && 'only {body}, {timestamp} and {id} are known',
    new Set(placeholders).size !== placeholders.length && 'each placeholder may stand only once',
    !signs('{body}') && 'must hold {body}',
    signs('{timestamp}') && !timed && '{timestamp} needs timestamp_header or the pairs form',
    settings.timestamp_header !== null && !signs('{timestamp}') && 'timestamp_header needs {timestamp} here',
    signs('{id}') && settings.id_header === null && '{id} needs id_header',
    settings.id_header !== null && !signs('{id}') && 'id_header needs {id} here',
  ].filter((problem) => problem !== false)
}

const MAX_HEADER_LENGTH = 4096
const MAX_SIGNATURES = 16
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const HEX = /^(?:[0-9a-f]{2})+$/i
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/
/** Printable, without blanks and commas, so that two headers joined by `, ` are not one token. */
const TOKEN = /^[\x21-\x2b\x2d-\x7e]{1,255}$/

/** Bytes of a secret or a signature; null for a malformed one, in which `Buffer` would skip characters, and an empty one. */
const BYTES = {
  text: (text: string) => (text === '' ? null : Buffer.from(text, 'utf8')),
  base64: (text: string) => (text !== '' && BASE64.test(text) ? Buffer.from(text, 'base64') : null),
  hex: (text: string) => (HEX.test(text) ? Buffer.from(text, 'hex') : null),
}

/** Epoch ms from the text of a header, NaN unless it is exactly one time, and back. */
const TIMESTAMPS = {
  unix_seconds: {
    read: (text: string) => (/^\d{1,12}$/.test(text) ? Number(text) * 1000 : Number.NaN),
    write: (at: number) => String(Math.floor(at / 1000)),
  },
  unix_milliseconds: {
    read: (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : Number.NaN),
    write: String,
  },
  rfc3339: {
    read: (text: string) => (RFC3339.test(text) ? Date.parse(text) : Number.NaN),
    write: (at: number) => new Date(at).toISOString(),
  },
}

/** The HMAC scheme that these settings describe. */
export function createHmacScheme(settings: HmacSettings): SignatureScheme {
  const { signature_header, timestamp_header, id_header, template, secret_encoding } = settings
  const readKey = BYTES[secret_encoding]
  const signedTime = template.includes('{timestamp}') ? timestamp_header : null
  return {
    requiredHeaders: [signature_header, signedTime, id_header].filter((name) => name !== null),
    verify: (input) => verify(settings, input, input.secrets.map(readKey)),
    sign(input) {
      const key = readKey(input.secret)
      if (key === null) throw new Error(`the secret is empty or not ${secret_encoding}`)
      return signedHeaders(settings, input, key)
    },
    secretProblem(secret) {
      if (readKey(secret) !== null) return null
      return secret_encoding === 'text' ? 'must not be empty' : `must be ${secret_encoding}`
    },
  }
}

function verify(
  settings: HmacSettings,
  { headers, rawBody, now }: SignedRequest,
  keys: readonly (Buffer | null)[],
): SignatureVerdict {
  const { signature_header, timestamp_header, timestamp_format, id_header, id_field, template } = settings
  const header = headerText(headers, signature_header)
  const presented = header === null ? null : readSignatureHeader(settings, header)
  if (presented === null) return refused(`${signature_header} is missing or malformed`)

  const isTimed = template.includes('{timestamp}')
  const timestamp =
    (timestamp_header === null ? presented.timestamp : headerText(headers, timestamp_header)) ?? ''
  const signedAt = TIMESTAMPS[timestamp_format].read(timestamp)
  if (isTimed && Number.isNaN(signedAt)) return refused('the timestamp is missing or not one time')
  if (isTimed && Math.abs(now - signedAt) > settings.tolerance_seconds * 1000) {
    return refused('the timestamp is too far from our clock')
  }

  const id = id_header === null ? null : headerToken(headers, id_header)
  if (id_header !== null && id === null) return refused(`${id_header} is missing or not one id`)

  const parts = render(template, { timestamp, id: id ?? '', body: rawBody })
  if (!anyMacMatches(settings, keys, presented.signatures, parts)) return refused('no signature matches')
  const fromBody = id_field === null ? null : bodyToken(bodyObject(rawBody), id_field)
  return { ok: true, deliveryId: id ?? fromBody, signedAt: isTimed ? signedAt : null }
}

/** One header as text, or null when it is absent, empty or too long. */
function headerText(headers: LowerCaseHeaders, name: string): string | null {
  if (!Object.hasOwn(headers, name)) return null
  const value: unknown = headers[name]
  return typeof value === 'string' && value !== '' && value.length <= MAX_HEADER_LENGTH ? value : null
}

/** One header that must be a single printable token, such as an event id. */
export function headerToken(headers: LowerCaseHeaders, name: string): string | null {
  const value = headerText(headers, name)
  return value !== null && TOKEN.test(value) ? value : null
}

function readSignatureHeader(
  settings: HmacSettings,
  header: string,
): { signatures: string[]; timestamp: string | null } | null {
  const { prefix } = settings
  const strip = (values: string[]) =>
    values.filter((value) => value.startsWith(prefix)).map((value) => value.slice(prefix.length))
  if (settings.header_form === 'value') {
    // In a list separated by blanks, a comma before a blank means two joined headers.
    if (settings.separator === ' ' && /,(\s|$)/.test(header)) return null
    const values = settings.separator === null ? [header] : header.split(settings.separator)
    return { signatures: strip(values.map((value) => value.trim())), timestamp: null }
  }
  const pairs = header.split(',').map((pair) => {
    const border = pair.indexOf('=')
    return border < 0 ? null : { key: pair.slice(0, border).trim(), value: pair.slice(border + 1).trim() }
  })
  const valuesOf = (key: string) => pairs.flatMap((pair) => (pair?.key === key ? [pair.value] : []))
  const timestamps = valuesOf(settings.timestamp_key)
  // With two times it is unclear which one was signed: two joined headers, or an attack.
  if (pairs.includes(null) || timestamps.length > 1) return null
  return { signatures: strip(valuesOf(settings.signature_key)), timestamp: timestamps[0] ?? null }
}

/** The signed content in parts, so that the body stays bytes and is not searched for placeholders. */
function render(
  template: string,
  values: { timestamp: string; id: string; body: Buffer },
): (string | Buffer)[] {
  const byName = new Map<string, string | Buffer>([
    ['{timestamp}', values.timestamp],
    ['{id}', values.id],
    ['{body}', values.body],
  ])
  return template.split(/(\{(?:timestamp|id|body)\})/).map((part) => byName.get(part) ?? part)
}

function macOf({ algorithm }: HmacSettings, key: Buffer, parts: readonly (string | Buffer)[]): Buffer {
  const hmac = createHmac(algorithm, key)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/**
 * True when any presented signature is the MAC of `parts` under any of the keys. Unreadable keys and signatures do not match. Compares
 * lengths first, because `timingSafeEqual` throws for unequal ones.
 */
function anyMacMatches(
  settings: HmacSettings,
  keys: readonly (Buffer | null)[],
  presented: readonly string[],
  parts: readonly (string | Buffer)[],
): boolean {
  const candidates = presented.slice(0, MAX_SIGNATURES).map(BYTES[settings.encoding])
  let matched = false
  for (const key of keys) {
    if (key === null) continue
    const expected = macOf(settings, key, parts)
    for (const candidate of candidates) {
      if (candidate?.length === expected.length && timingSafeEqual(candidate, expected)) matched = true
    }
  }
  return matched
}

function signedHeaders(settings: HmacSettings, input: SigningInput, key: Buffer): Record<string, string> {
  const timestamp = TIMESTAMPS[settings.timestamp_format].write(input.now)
  const parts = render(settings.template, { timestamp, id: input.deliveryId, body: input.rawBody })
  const signature = `${settings.prefix}${macOf(settings, key, parts).toString(settings.encoding)}`
  const timedByPair = settings.header_form === 'pairs' && settings.timestamp_header === null
  const pairs = [
    ...(timedByPair ? [`${settings.timestamp_key}=${timestamp}`] : []),
    `${settings.signature_key}=${signature}`,
  ]
  return {
    [settings.signature_header]: settings.header_form === 'pairs' ? pairs.join(',') : signature,
    ...(settings.timestamp_header === null ? {} : { [settings.timestamp_header]: timestamp }),
    ...(settings.id_header === null ? {} : { [settings.id_header]: input.deliveryId }),
  }
}

/** The body as a JSON object; null for any other body and for one that is too costly to parse. Call it only after the MAC matched. */
export function bodyObject(rawBody: Buffer): Record<string, unknown> | null {
  try {
    const body = parseBoundedJson(rawBody.toString('utf8'))
    return typeof body === 'object' && !Array.isArray(body) ? (body as Record<string, unknown> | null) : null
  } catch (error) {
    if (error instanceof UnreadableJson) return null
    throw error
  }
}

/** A text field of a JSON body as an event id; null when it is absent or not a token. */
export function bodyToken(body: Record<string, unknown> | null, field: string): string | null {
  const value = body !== null && Object.hasOwn(body, field) ? body[field] : null
  return typeof value === 'string' && TOKEN.test(value) ? value : null
}
