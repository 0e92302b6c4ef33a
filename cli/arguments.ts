import { DateTime } from 'luxon'
import type { Config } from '../server/platform/config.ts'
import { lineOfText, longText } from '../shared/schemas/common.ts'
import { wrongUsage } from './failures.ts'

/**
 * A moment in RFC 3339 with `Z` or an offset, or a plain date, which means that date's midnight in BILLING_TIMEZONE. → epoch ms, and
 * `null` where none was given. Refuses (exit 2) anything else.
 */
export function readMoment(text: string | undefined, { BILLING_TIMEZONE: zone }: Config): number | null {
  if (text === undefined) return null
  const plainDate = /^\d{4}-\d{2}-\d{2}$/.test(text)
  const moment = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/i.test(text)
  const parsed = plainDate || moment ? DateTime.fromISO(text, { zone }) : null
  if (parsed?.isValid) return parsed.toMillis()
  throw wrongUsage(
    `"${text}" is not a time: give 2026-11-20T17:30:00+05:00, or 2026-11-20 for its midnight in ${zone}.`,
  )
}

/** How long a text may be, in characters: one line, or with line breaks. */
export type TextRule = ({ line: number } | { lines: number }) & { required?: boolean }

/** A text by its rule, trimmed. Refuses (exit 2) one that breaks it. */
export function readText(option: string, text: string, rule: TextRule): string {
  const [schema, what] =
    'line' in rule
      ? [lineOfText(1, rule.line), `one line of 1 to ${rule.line}`]
      : [longText(1, rule.lines), `text of 1 to ${rule.lines}`]
  const parsed = schema.safeParse(text)
  if (parsed.success) return parsed.data
  throw wrongUsage(`${option} must be ${what} characters that can be seen, without direction controls.`)
}
