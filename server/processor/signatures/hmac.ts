import { z } from 'zod'
import {
  anyMacMatches,
  base64Bytes,
  bodyObject,
  bodyToken,
  headerText,
  headerToken,
  hexBytes,
  isWithin,
  mac,
  readTimestamp,
  textBytes,
  writeTimestamp,
} from './mac.ts'
import {
  refused,
  type SignatureScheme,
  type SignatureVerdict,
  type SignedRequest,
  type SigningInput,
} from './scheme.ts'

const PLACEHOLDER = /\{[^{}]*\}/g

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,100}$/, 'not a header name')
  .transform((name) => name.toLowerCase())

/**
 * The settings of the `hmac` scheme. `template` is the signed content, made of `{body}`, `{timestamp}` and `{id}`. A time or an id from a
 * header must be part of it: unsigned, it could be replaced in a captured request.
 */
export const hmacSettingsSchema = z
  .strictObject({
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
  .superRefine((settings, context) => {
    for (const problem of templateProblems(settings)) {
      context.addIssue({ code: 'custom', path: ['template'], message: problem })
    }
  })

export type HmacSettings = z.infer<typeof hmacSettingsSchema>

function templateProblems(settings: {
  template: string
  header_form: 'value' | 'pairs'
  timestamp_header: string | null
  id_header: string | null
}): string[] {
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

const KEY_READERS = { text: textBytes, base64: base64Bytes, hex: hexBytes }

interface Presented {
  signatures: string[]
  timestamp: string | null
}

/** The HMAC scheme that these settings describe. */
export function createHmacScheme(settings: HmacSettings): SignatureScheme {
  const readKey = KEY_READERS[settings.secret_encoding]
  const { signature_header, timestamp_header, id_header, template } = settings
  return {
    requiredHeaders: [
      signature_header,
      template.includes('{timestamp}') ? timestamp_header : null,
      id_header,
    ].filter((name) => name !== null),
    verify: (input) => verify(settings, input, input.secrets.map(readKey)),
    sign(input) {
      const key = readKey(input.secret)
      if (key === null) throw new Error(`the secret is empty or not ${settings.secret_encoding}`)
      return signedHeaders(settings, input, key)
    },
    secretProblem(secret) {
      if (readKey(secret) !== null) return null
      return settings.secret_encoding === 'text' ? 'must not be empty' : `must be ${settings.secret_encoding}`
    },
  }
}

function verify(
  settings: HmacSettings,
  input: SignedRequest,
  keys: readonly (Buffer | null)[],
): SignatureVerdict {
  const header = headerText(input.headers, settings.signature_header)
  const presented = header === null ? null : readSignatureHeader(settings, header)
  if (presented === null) return refused(`${settings.signature_header} is missing or malformed`)

  let signedAt: number | null = null
  let timestamp = ''
  if (settings.template.includes('{timestamp}')) {
    const given =
      settings.timestamp_header === null
        ? presented.timestamp
        : headerText(input.headers, settings.timestamp_header)
    signedAt = given === null ? null : readTimestamp(given, settings.timestamp_format)
    if (given === null || signedAt === null) return refused('the timestamp is missing or not one time')
    if (!isWithin(settings.tolerance_seconds * 1000, signedAt, input.now)) {
      return refused('the timestamp is too far from our clock')
    }
    timestamp = given
  }

  const id = settings.id_header === null ? null : headerToken(input.headers, settings.id_header)
  if (settings.id_header !== null && id === null)
    return refused(`${settings.id_header} is missing or not one id`)

  const parts = render(settings.template, { timestamp, id: id ?? '', body: input.rawBody })
  const { algorithm, encoding } = settings
  if (!anyMacMatches({ algorithm, encoding, keys, presented: presented.signatures, parts })) {
    return refused('no signature matches')
  }
  const fromBody = settings.id_field === null ? null : bodyToken(bodyObject(input.rawBody), settings.id_field)
  return { ok: true, deliveryId: id ?? fromBody, signedAt }
}

function readSignatureHeader(settings: HmacSettings, header: string): Presented | null {
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

function signedHeaders(settings: HmacSettings, input: SigningInput, key: Buffer): Record<string, string> {
  const timestamp = writeTimestamp(input.now, settings.timestamp_format)
  const parts = render(settings.template, { timestamp, id: input.deliveryId, body: input.rawBody })
  const signature = `${settings.prefix}${mac(settings.algorithm, key, parts).toString(settings.encoding)}`
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
