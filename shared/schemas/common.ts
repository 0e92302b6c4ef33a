import { z } from 'zod'
import { ERROR_STATUS, type ErrorCode, type Problem } from '../error-codes.ts'
import { CURRENCY } from '../money.ts'
import { percentToBasisPoints } from '../rates.ts'

/** What an account may do. Admins are made on the command line only. */
export const role = z.enum(['merchant', 'creator', 'admin']).describe('What the account may do.')
export type Role = z.infer<typeof role>

const EXAMPLE_ID = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'
/** The message for a text that is no id. */
export const NOT_AN_ID = `must be an id such as ${EXAMPLE_ID}`

/** An id in a path, a query or a body: one of our UUIDs, in small letters. */
export const idParam = z
  .string()
  .regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, NOT_AN_ID)
  .meta({ description: 'A UUIDv7, in small letters.', example: EXAMPLE_ID })

/** The input of a call about one resource. */
export const idInput = z.strictObject({ id: idParam })

/** Money as it is answered: always two places. Paisa → `formatMoney`. */
export const moneyText = z
  .string()
  .regex(/^-?\d{1,18}\.\d{2}$/, 'must be an amount such as 1250.00')
  .meta({ description: 'Rupees with exactly two places.', example: '1250.00' })

/** Money as it is sent to us: up to two places, not below zero. → Paisa with `parseMoney`. */
export const moneyInput = z
  .string()
  .regex(/^\d{1,13}(\.\d{1,2})?$/, 'must be an amount in rupees such as "1250.00"')
  .meta({ description: 'Rupees with at most two places.', example: '1250.00' })

const between = (least: number, most: number) => `must be between ${least} and ${most}`

/** A whole number from `least` to `most`. */
export const wholeNumber = (least: number, most: number) =>
  z.int().min(least, between(least, most)).max(most, between(least, most))

/** Percent from `least` to `most` with at most two decimals. → basis points with `percentToBasisPoints`. */
export const percentFrom = (least: number, most: number) =>
  z
    .number()
    .min(least, between(least, most))
    .max(most, between(least, most))
    .refine((value) => percentToBasisPoints(value) !== null, 'must have at most two decimals')
    .meta({ description: 'Percent with at most two decimals.', example: 12.5 })

export const percent = percentFrom(0, 100)

/** A moment as it is answered: RFC 3339, UTC, milliseconds. Epoch ms → `isoTime`. */
export const wireTime = z.iso
  .datetime({ precision: 3 })
  .meta({ description: 'RFC 3339, UTC.', example: '2026-11-20T17:30:00.000Z' })

/** A moment as it is sent to us: RFC 3339 with `Z` or an offset. → epoch ms with `Date.parse`. */
export const wireTimeInput = z.iso
  .datetime({ offset: true, error: 'must be a moment such as 2026-11-20T17:30:00Z' })
  .meta({ description: 'RFC 3339 with Z or an offset.', example: '2026-11-20T17:30:00Z' })

interface Period {
  from?: string | undefined
  to?: string | undefined
}

/** For `refine` with `NOT_IN_ORDER`. */
export const isInOrder = ({ from, to }: Period): boolean =>
  from === undefined || to === undefined || Date.parse(from) <= Date.parse(to)
export const NOT_IN_ORDER = { path: ['from'], message: 'is later than to' }

export const currency = z.literal(CURRENCY).meta({ description: 'All amounts are Pakistani rupees.' })

/** Control characters: none of them belongs into a line of text, and PostgreSQL refuses NUL in any. */
const NO_CONTROLS = /^[^\p{Cc}\u2028\u2029]*$/u
const NO_CONTROLS_BUT_BREAKS = /^(?:[^\p{Cc}]|[\n\r\t])*$/u

/** The same in JSON Schema, for readers that know neither Unicode classes nor `\u`; they let line separators pass. */
const PUBLISHED = new Map([
  [NO_CONTROLS, '^[^\\x00-\\x1f\\x7f-\\x9f]*$'],
  [NO_CONTROLS_BUT_BREAKS, '^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]*$'],
])

/** Half of a surrogate pair is no character: what is stored would be another text than what was sent. */
const wholeCharacters = (text: string) => text.isWellFormed()
const NOT_WHOLE = 'must not hold half of a character'

/** A character that can be seen. Spaces, soft hyphens, joiners, fillers and the blank of Braille cannot. */
const VISIBLE = /[^\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u
const isVisible = (text: string) => text === '' || VISIBLE.test(text)
const NOT_VISIBLE = 'must have characters that can be seen'

/** Embeddings, overrides and isolates change how the text around them reads. Urdu needs joiners and marks only, which are allowed. */
const DIRECTION_CONTROL = /[\u202a-\u202e\u2066-\u2069]/
const keepsDirection = (text: string) => !DIRECTION_CONTROL.test(text)
const TURNS_TEXT = 'must not hold characters that change the direction of the text around them'

/** Trimmed text, `least` to `most` characters, all of them allowed by `pattern`. */
const trimmed = (least: number, most: number, pattern: RegExp, message: string) =>
  z
    .string()
    .trim()
    .min(least)
    .max(most)
    .regex(pattern, message)
    .refine(wholeCharacters, NOT_WHOLE)
    .meta({ pattern: PUBLISHED.get(pattern) })

const shown = (text: z.ZodString) => text.refine(isVisible, NOT_VISIBLE).refine(keepsDirection, TURNS_TEXT)

/** One line that is compared or parsed, and never shown to others: a search, an address. Trimmed, `least` to `most` characters. */
export const unshownLine = (least: number, most: number) =>
  trimmed(least, most, NO_CONTROLS, 'must be one line without control characters')

/** One line of text that others read, trimmed, `least` to `most` characters. */
export const lineOfText = (least: number, most: number) => shown(unshownLine(least, most))

/** Text with line breaks that others read, trimmed, `least` to `most` characters. */
export const longText = (least: number, most: number) => {
  const message = 'must not hold control characters other than line breaks and tabs'
  return shown(trimmed(least, most, NO_CONTROLS_BUT_BREAKS, message))
}

/** A text that is kept or hashed as it is, with nothing in it that would be changed or refused on the way. */
export const wholeText = () =>
  z
    .string()
    .regex(/^[^\0]*$/, 'must not hold zero characters')
    .refine(wholeCharacters, NOT_WHOLE)

/** The two fields of every list's input: `z.strictObject({ …, ...pageInput })`, with `.prefault({})` if all are optional. */
export const pageInput = {
  limit: wholeNumber(1, 100).default(25).describe('How many items at most.'),
  cursor: z.string().max(1000).optional().describe('`next_cursor` of the page before.'),
}

/** The input of a list without filters. */
export const listInput = z.strictObject(pageInput).prefault({})

/** A list's answer. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({
    items: z.array(item).describe('Of this page.'),
    next_cursor: z.string().nullable().describe('Give it as `cursor` for the next page; null on the last.'),
  })

export const errorCode = z.enum(Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]])

/** RFC 9457: every error's body on REST, and `error.data.problem` on tRPC. */
export const problem = z
  .object({
    type: z.string().describe('Always about:blank: `code` tells problems apart.'),
    title: z.string().describe("The status' name."),
    status: z.int(),
    detail: z.string().describe('For people.'),
    code: errorCode.describe('For programs; stable.'),
    request_id: z.string().describe('Names the request in the log of the service.'),
    issues: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .describe('What is wrong with which field, for `validation_failed`.'),
  })
  .meta({ id: 'Problem' }) satisfies z.ZodType<Problem>
