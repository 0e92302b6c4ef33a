import { MalformedOrder } from './malformed-order.ts'

/** Real orders nest about ten levels; the limit keeps the reviver's recursion far from the end of the stack. */
const MAX_DEPTH = 64

const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * A number with 16 digits or more can lie above 2^53. The first test is ten times as fast and rules out nearly every order; what the
 * second one finds inside a string costs time and nothing else.
 */
const LONG_DIGITS = /\d{16}/
const LONG_INTEGER = /(?:^|[:[,])\s*\d{16}/
const INTEGER = /^\d+$/

/** Its third argument is part of ECMAScript since 2025 and of Node since 21, but not yet of the type library. */
type SourceReviver = (key: string, value: unknown, context?: { source?: string }) => unknown
const parseWithSource: (text: string, reviver: SourceReviver) => unknown = JSON.parse

/**
 * `JSON.parse` that loses no digit of an integer: one above 2^53 comes back as its string of digits, everything else as usual.
 * The slower way through a reviver is taken only by texts with a long integer. Throws `MalformedOrder` for what is no JSON or
 * nests too deep.
 */
export function parseLossless(text: string): unknown {
  if (nestsTooDeep(text)) throw new MalformedOrder(`nested deeper than ${MAX_DEPTH} levels`)
  try {
    const long = LONG_DIGITS.test(text) && LONG_INTEGER.test(text)
    return long ? parseWithSource(text, keepDigits) : JSON.parse(text)
  } catch {
    throw new MalformedOrder('not JSON')
  }
}

function keepDigits(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
  const source = context?.source
  return source !== undefined && INTEGER.test(source) ? source : value
}

function nestsTooDeep(text: string): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > MAX_DEPTH) return true
    } else if (code === 0x7d || code === 0x5d) depth--
  }
  return false
}

/** The closing quote of the string that opens at `start`; found natively, since most of an order's text is strings. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end === -1 ? text.length : end
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0
  while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++
  return backslashes % 2 === 1
}
