import { MalformedOrder } from './malformed-order.ts'

/** Real orders nest about ten levels; the limit keeps the reviver's recursion far from the end of the stack. */
const MAX_DEPTH = 64

/** A number with so many digits can lie above 2^53. */
const LONG_DIGITS = 16

const QUOTE = 0x22
const BACKSLASH = 0x5c
const [ZERO, NINE] = [0x30, 0x39]

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
  const { depth, digits } = lookOver(text)
  if (depth > MAX_DEPTH) throw new MalformedOrder(`nested deeper than ${MAX_DEPTH} levels`)
  try {
    return digits >= LONG_DIGITS ? parseWithSource(text, keepDigits) : JSON.parse(text)
  } catch {
    throw new MalformedOrder('not JSON')
  }
}

function keepDigits(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
  const source = context?.source
  return source !== undefined && INTEGER.test(source) ? source : value
}

/**
 * How deep a text nests and how many digits its longest number has, outside of strings; what is no JSON is left to the
 * parser. Byte by byte: a text's characters, and the parsed values, take twice as long.
 */
function lookOver(text: string): { depth: number; digits: number } {
  const bytes = Buffer.from(text)
  let [level, depth, run, digits] = [0, 0, 0, 0]
  let inString = false
  for (let at = 0; at < bytes.length; at++) {
    const code = bytes[at] ?? 0
    if (inString) {
      if (code === BACKSLASH) at++
      else if (code === QUOTE) inString = false
    } else if (code >= ZERO && code <= NINE) {
      if (++run > digits) digits = run
    } else {
      run = 0
      if (code === QUOTE) inString = true
      else if (code === 0x7b || code === 0x5b) {
        if (++level > depth) depth = level
      } else if (code === 0x7d || code === 0x5d) level--
    }
  }
  return { depth, digits }
}
