import { DateTime } from 'luxon'
import type { z } from 'zod'
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

/** A line of text of 1 to `most` characters. */
export function readLine(option: string, text: string, most: number): string {
  return read(lineOfText(1, most), text, `${option} must be one line of 1 to ${most} characters`)
}

/** Text of 1 to `most` characters, with line breaks. */
export function readText(option: string, text: string, most: number): string {
  return read(longText(1, most), text, `${option} must be text of 1 to ${most} characters`)
}

/** `--reason`, which is kept in the audit trail. */
export function readReason(text: string | undefined): string | null {
  return text === undefined ? null : readText('--reason', text, 2000)
}

function read(schema: z.ZodType<string>, text: string, rule: string): string {
  const parsed = schema.safeParse(text)
  if (parsed.success) return parsed.data
  throw wrongUsage(`${rule} that can be seen, without direction controls.`)
}
