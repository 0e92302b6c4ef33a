import { createHmac, timingSafeEqual } from 'node:crypto'
import { parseBoundedJson, UnreadableJson } from '../../platform/bounded-json.ts'
import type { LowerCaseHeaders } from './scheme.ts'

type MacAlgorithm = 'sha256' | 'sha384' | 'sha512'
type MacEncoding = 'hex' | 'base64'

const MAX_HEADER_LENGTH = 4096
const MAX_SIGNATURES = 16
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const HEX = /^(?:[0-9a-f]{2})+$/i
const RFC3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/

/** Printable, without blanks and commas, so that two headers joined by `, ` are not one token. */
const TOKEN = /^[\x21-\x2b\x2d-\x7e]{1,255}$/

/** One header as text, or null when it is absent, empty or too long. */
export function headerText(headers: LowerCaseHeaders, name: string): string | null {
  if (!Object.hasOwn(headers, name)) return null
  const value: unknown = headers[name]
  return typeof value === 'string' && value !== '' && value.length <= MAX_HEADER_LENGTH ? value : null
}

/** One header that must be a single printable token, such as an event id. */
export function headerToken(headers: LowerCaseHeaders, name: string): string | null {
  const value = headerText(headers, name)
  return value !== null && TOKEN.test(value) ? value : null
}

/** Bytes of a strict base64 text; null for an empty or malformed one, in which `Buffer` would skip characters. */
export function base64Bytes(text: string): Buffer | null {
  return text !== '' && BASE64.test(text) ? Buffer.from(text, 'base64') : null
}

/** Bytes of a strict hexadecimal text; null for an empty or malformed one. */
export function hexBytes(text: string): Buffer | null {
  return HEX.test(text) ? Buffer.from(text, 'hex') : null
}

/** Bytes of a text secret; null when empty, because anyone can sign with an empty key. */
export function textBytes(text: string): Buffer | null {
  return text === '' ? null : Buffer.from(text, 'utf8')
}

export function mac(algorithm: MacAlgorithm, key: Buffer, parts: readonly (string | Buffer)[]): Buffer {
  const hmac = createHmac(algorithm, key)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/**
 * True when any presented signature is the MAC of `parts` under any of the keys. Unreadable keys and signatures do not match. Compares
 * lengths first, because `timingSafeEqual` throws for unequal ones.
 */
export function anyMacMatches(question: {
  algorithm: MacAlgorithm
  encoding: MacEncoding
  keys: readonly (Buffer | null)[]
  presented: readonly string[]
  parts: readonly (string | Buffer)[]
}): boolean {
  const decode = question.encoding === 'hex' ? hexBytes : base64Bytes
  const candidates = question.presented.slice(0, MAX_SIGNATURES).map(decode)
  let matched = false
  for (const key of question.keys) {
    if (key === null || key.length === 0) continue
    const expected = mac(question.algorithm, key, question.parts)
    for (const candidate of candidates) {
      if (candidate?.length === expected.length && timingSafeEqual(candidate, expected)) matched = true
    }
  }
  return matched
}

type TimestampFormat = 'unix_seconds' | 'unix_milliseconds' | 'rfc3339'

/** Epoch milliseconds of a header's timestamp, or null when it is not exactly one time in that format. */
export function readTimestamp(text: string, format: TimestampFormat): number | null {
  if (format === 'unix_seconds') return /^\d{1,12}$/.test(text) ? Number(text) * 1000 : null
  if (format === 'unix_milliseconds') return /^\d{1,15}$/.test(text) ? Number(text) : null
  const match = RFC3339.exec(text)
  if (!match) return null
  const [, seconds, fraction = '', zone] = match
  // Date.parse takes three digits of a second; the rest is far below any tolerance.
  const parsed = Date.parse(`${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}${zone}`)
  return Number.isNaN(parsed) ? null : parsed
}

/** Epoch milliseconds as a header's timestamp. */
export function writeTimestamp(at: number, format: TimestampFormat): string {
  if (format === 'unix_seconds') return String(Math.floor(at / 1000))
  return format === 'unix_milliseconds' ? String(at) : new Date(at).toISOString()
}

export function isWithin(toleranceMs: number, signedAt: number, now: number): boolean {
  return Math.abs(now - signedAt) <= toleranceMs
}

/** The body as a JSON object; null for any other body and for one that is too costly to parse. Call it only after the MAC matched. */
export function bodyObject(rawBody: Buffer): Record<string, unknown> | null {
  try {
    const body = parseBoundedJson(rawBody.toString('utf8'))
    return isObject(body) ? body : null
  } catch (error) {
    if (error instanceof UnreadableJson) return null
    throw error
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A text field of a JSON body as an event id; null when it is absent or not a token. */
export function bodyToken(body: Record<string, unknown> | null, field: string): string | null {
  const value = body !== null && Object.hasOwn(body, field) ? body[field] : null
  return typeof value === 'string' && TOKEN.test(value) ? value : null
}
