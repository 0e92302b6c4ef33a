import type { Fields } from './fields.ts'
import { MalformedOrder } from './malformed-order.ts'

/** Real orders nest about ten levels; the limit keeps the reviver's recursion far from the end of the stack. */
const MAX_DEPTH = 64

const INTEGER = /^\d+$/

/** Its third argument is part of ECMAScript since 2025 and of Node since 21, but not yet of the type library. */
type SourceReviver = (key: string, value: unknown, context?: { source?: string }) => unknown
const parseWithSource: (text: string, reviver: SourceReviver) => unknown = JSON.parse

/**
 * `JSON.parse` that loses no digit of an integer: one above 2^53 comes back as its string of digits, everything else as usual.
 * The slower way through a reviver is taken only by texts that have such an integer. Throws `MalformedOrder` for what is
 * no JSON or nests too deep.
 */
export function parseLossless(text: string): unknown {
  const value = parse(text)
  // By the values rather than the text, which would take as long as parsing it; without a reviver no depth harms the parser.
  const seen = look(value, MAX_DEPTH)
  if (seen === 'too_deep') throw new MalformedOrder(`nested deeper than ${MAX_DEPTH} levels`)
  return seen === 'long_integer' ? parse(text, keepDigits) : value
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

type Seen = 'nothing' | 'long_integer' | 'too_deep'

/** What a parsed value holds that it must not: more than `levels` lists and objects inside each other, or a number above 2^53. */
function look(value: unknown, levels: number): Seen {
  if (typeof value === 'number') return value > Number.MAX_SAFE_INTEGER ? 'long_integer' : 'nothing'
  if (typeof value !== 'object' || value === null) return 'nothing'
  if (levels === 0) return 'too_deep'
  return Array.isArray(value) ? lookAtParts(value, levels) : lookAtFields(value as Fields, levels)
}

function lookAtParts(parts: readonly unknown[], levels: number): Seen {
  let worst: Seen = 'nothing'
  for (const part of parts) {
    const seen = look(part, levels - 1)
    if (seen === 'too_deep') return seen
    if (seen === 'long_integer') worst = seen
  }
  return worst
}

function lookAtFields(fields: Fields, levels: number): Seen {
  let worst: Seen = 'nothing'
  // Far faster than a list of the values; parsed objects inherit nothing that could be enumerated.
  for (const key in fields) {
    const seen = look(fields[key], levels - 1)
    if (seen === 'too_deep') return seen
    if (seen === 'long_integer') worst = seen
  }
  return worst
}
