import { MalformedOrder } from './malformed-order.ts'

/** Real orders nest about ten levels; the limit keeps the reviver's recursion far from the end of the stack. */
const MAX_DEPTH = 64

/**
 * A number with sixteen digits can lie above 2^53. What looks like one inside a string costs time and changes nothing; only where
 * a number can begin, since the digits of a string mostly stand behind something else.
 */
const LONG_INTEGER = /(?:^|[\s:,[])\d{16}/

const INTEGER = /^\d+$/

/** Its third argument is part of ECMAScript since 2025 and of Node since 21, but not yet of the type library. */
type SourceReviver = (key: string, value: unknown, context?: { source?: string }) => unknown
const parseWithSource: (text: string, reviver: SourceReviver) => unknown = JSON.parse

/**
 * `JSON.parse` that loses no digit of an integer: one above 2^53 comes back as its string of digits, everything else as usual.
 * The slower way through a reviver is taken only by texts that seem to have a long integer. Throws `MalformedOrder` for what is
 * no JSON or nests too deep.
 */
export function parseLossless(text: string): unknown {
  const value = parse(text)
  // By the values rather than the text, which would take as long as parsing it; without a reviver no depth harms the parser.
  if (isDeeper(value, MAX_DEPTH)) throw new MalformedOrder(`nested deeper than ${MAX_DEPTH} levels`)
  return LONG_INTEGER.test(text) ? parse(text, keepDigits) : value
}

function parse(text: string, reviver?: SourceReviver): unknown {
  try {
    return reviver ? parseWithSource(text, reviver) : JSON.parse(text)
  } catch {
    throw new MalformedOrder('not JSON')
  }
}

function keepDigits(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
  const source = context?.source
  return source !== undefined && INTEGER.test(source) ? source : value
}

/** Whether a parsed value has more than `levels` lists and objects inside each other. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  if (Array.isArray(value)) return value.some((part) => isDeeper(part, levels - 1))
  const fields = value as Record<string, unknown>
  // Far faster than a list of the values; parsed objects inherit nothing that could be enumerated.
  for (const key in fields) if (isDeeper(fields[key], levels - 1)) return true
  return false
}
