import { type Paisa, parseMoney } from '../shared/money.ts'
import { wrongUsage } from './failures.ts'

/** `1250` or `1250.50` → paisa. Refuses (exit 2) anything else, also more than two decimals. */
export function readAmount(text: string): Paisa {
  const amount = parseMoney(text)
  if (amount !== null && amount > 0) return amount
  throw wrongUsage(
    `"${text}" is no amount: give rupees above zero with at most two decimals, such as 1250.50.`,
  )
}

/**
 * A moment in RFC 3339 with `Z` or an offset, or a plain date, which means that date's midnight in `zone`. → epoch ms.
 * Refuses (exit 2) anything else.
 */
export async function readMoment(text: string, zone: string): Promise<number> {
  const { DateTime } = await import('luxon')
  const plainDate = /^\d{4}-\d{2}-\d{2}$/.test(text)
  const moment = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/i.test(text)
  const parsed = plainDate || moment ? DateTime.fromISO(text, { zone }) : null
  if (parsed?.isValid) return parsed.toMillis()
  throw wrongUsage(
    `"${text}" is no time: give 2026-11-20T17:30:00+05:00, or 2026-11-20 for its midnight in ${zone}.`,
  )
}

/** A line of text of `least` to `most` characters. */
export async function readLine(option: string, text: string, most: number): Promise<string> {
  const { lineOfText } = await import('../shared/schemas/common.ts')
  const parsed = lineOfText(1, most).safeParse(text)
  if (parsed.success) return parsed.data
  throw wrongUsage(
    `${option} must be one line of 1 to ${most} characters that can be seen, without direction controls.`,
  )
}

/** Text of 1 to `most` characters, with line breaks. */
export async function readText(option: string, text: string, most: number): Promise<string> {
  const { longText } = await import('../shared/schemas/common.ts')
  const parsed = longText(1, most).safeParse(text)
  if (parsed.success) return parsed.data
  throw wrongUsage(
    `${option} must be text of 1 to ${most} characters that can be seen, without direction controls.`,
  )
}

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** One of our ids, in any case. Refuses (exit 2) anything else. */
export function readId(what: string, text: string): string {
  const id = text.trim().toLowerCase()
  if (ID.test(id)) return id
  throw wrongUsage(
    `"${text}" is no id of ${/^[aeio]/.test(what) ? 'an' : 'a'} ${what}: ids look like 019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e.`,
  )
}

/** `12.5` → basis points. Refuses (exit 2) anything else. */
export async function readPercent(option: string, text: string): Promise<number> {
  const { percentToBasisPoints } = await import('../shared/rates.ts')
  const rate = /^\d+(\.\d+)?$/.test(text.trim()) ? percentToBasisPoints(Number(text)) : null
  if (rate !== null && rate <= 10_000) return rate
  throw wrongUsage(`${option} must be a percentage from 0 to 100 with at most two decimals.`)
}
