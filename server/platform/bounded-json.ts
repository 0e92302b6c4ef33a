/**
 * Tokens of RFC 8259: strings, numbers, literals, brackets, commas and colons, without those of skipped values. An order of a thousand
 * lines has about 110,000.
 */
export const MAX_JSON_TOKENS = 150_000
/** Tokens of skipped values, which are only gone through. */
const MAX_SKIPPED_TOKENS = 600_000
/** Real orders nest about ten levels deep. */
const MAX_JSON_DEPTH = 64
/** The event loop runs before and after a text with more characters than this is parsed. */
export const LARGE_JSON = 128 * 1024

/** Text that is not JSON or is too expensive to parse. `reason` contains nothing of the text. */
export class UnreadableJson extends Error {
  readonly reason: string

  constructor(reason: string) {
    super(`unreadable JSON: ${reason}`)
    this.name = 'UnreadableJson'
    this.reason = reason
  }
}

/** Whether the value of the key from `start` to `end`, without its quotes, is not needed. */
export type SkipsKey = (text: string, start: number, end: number) => boolean

/**
 * `JSON.parse` with a bounded cost: a text of 2 MiB takes less than 50 ms for any content. Integers above 2^53 - 1 come back as
 * strings of their digits, everything else as from `JSON.parse`. Values that `skips` names come back as `null`: they are only gone
 * through, so that what is wrong in them may pass. Throws `UnreadableJson` for text that is not JSON, has more than `MAX_JSON_TOKENS`
 * tokens or nests deeper than `MAX_JSON_DEPTH` levels.
 */
export function parseBoundedJson(text: string, skips?: SkipsKey): unknown {
  const quoted = prepareJson(text, skips)
  try {
    return JSON.parse(quoted)
  } catch {
    throw new UnreadableJson('not JSON')
  }
}

const TAB = 0x09
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const DIGIT_0 = 0x30
const DIGIT_9 = 0x39
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** Integers with fewer digits are safe integers. */
const LONG = 16

/**
 * Goes through the text once: counts tokens and levels, puts quotes around integers above 2^53 - 1, and `null` in place of skipped values.
 * It does not validate: text that is not JSON is still not JSON afterwards, but for what is skipped.
 */
function prepareJson(text: string, skips: SkipsKey | undefined): string {
  const { length } = text
  let prepared = ''
  let copiedTo = 0
  let tokens = 0
  let skipped = 0
  let depth = 0
  let at = 0
  /** Of the last string, which is a key when a colon follows it. */
  let stringStart = 0
  let stringEnd = 0
  /** The level of the value that is being skipped. */
  let skippedAt = -1
  while (at < length) {
    const code = text.charCodeAt(at)
    if (code === SPACE || (code >= TAB && code < SPACE)) {
      at += 1
      continue
    }
    if (skippedAt === -1) tokens += 1
    else skipped += 1
    if (tokens > MAX_JSON_TOKENS || skipped > MAX_SKIPPED_TOKENS)
      throw new UnreadableJson(`more than ${MAX_JSON_TOKENS} JSON tokens`)
    if (code === QUOTE) {
      stringStart = at + 1
      at = endOfString(text, at)
      stringEnd = at - 1
    } else if (code === COLON) {
      at += 1
      if (skips === undefined || skippedAt !== -1 || !skips(text, stringStart, stringEnd)) continue
      prepared += `${text.slice(copiedTo, at)}null`
      skippedAt = depth
    } else if (code === COMMA) {
      if (skippedAt === depth) {
        skippedAt = -1
        copiedTo = at
      }
      at += 1
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1
      if (depth > MAX_JSON_DEPTH) throw new UnreadableJson(`nested deeper than ${MAX_JSON_DEPTH} levels`)
      at += 1
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (skippedAt === depth) {
        skippedAt = -1
        copiedTo = at
      }
      depth -= 1
      at += 1
    } else {
      const end = endOfWord(text, at)
      if (skippedAt === -1 && end - at >= LONG && isLongInteger(text, at, end)) {
        prepared += `${text.slice(copiedTo, at)}"${text.slice(at, end)}"`
        copiedTo = end
      }
      at = end
    }
  }
  if (skippedAt !== -1) return prepared
  return copiedTo === 0 ? text : prepared + text.slice(copiedTo)
}

/** The place after the string that begins at `start`. A quote is escaped when an odd number of backslashes precedes it. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1
    if (backslashes % 2 === 0) return at + 1
  }
  return text.length
}

const WORD_END = /[\0- ,:"[\]{}]/g

/** The place after the number or literal that begins at `start`. */
function endOfWord(text: string, start: number): number {
  WORD_END.lastIndex = start + 1
  return WORD_END.test(text) ? WORD_END.lastIndex - 1 : text.length
}

/**
 * Digits only, without a leading zero, above 2^53 - 1, and not in a key's place: quotes there, or around a leading zero, would turn text
 * that is not JSON into JSON.
 */
function isLongInteger(text: string, start: number, end: number): boolean {
  if (text.charCodeAt(start) === DIGIT_0) return false
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at)
    if (code < DIGIT_0 || code > DIGIT_9) return false
  }
  if (end - start === LONG && Number.isSafeInteger(Number(text.slice(start, end)))) return false
  let next = end
  while (next < text.length && text.charCodeAt(next) <= SPACE) next += 1
  return text.charCodeAt(next) !== COLON
}
