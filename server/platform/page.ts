import type { z } from 'zod'
import { Refusal } from './refusal.ts'

/** A list's answer, in the wire's words. */
export interface Page<Item> {
  items: Item[]
  next_cursor: string | null
}

/** A cursor for the row after which the next page starts: opaque to clients, base64url of JSON. */
export function encodeCursor(key: unknown): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url')
}

/**
 * Reads a cursor that `encodeCursor` made; `null` when none was given. Refuses with `validation_failed` what is no
 * cursor of this list, so `key` should be as strict as the column that it is compared with.
 */
export function decodeCursor<Key extends z.ZodType>(
  text: string | undefined,
  key: Key,
): z.output<Key> | null {
  if (text === undefined) return null
  const parsed = key.safeParse(parseJson(Buffer.from(text, 'base64url').toString('utf8')))
  if (parsed.success) return parsed.data
  throw new Refusal('validation_failed', 'The cursor is not one that this list gave out.', {
    issues: [{ path: 'cursor', message: 'must be the next_cursor of the page before' }],
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Makes a page of up to `limit + 1` rows: the one too many only tells that there are more. */
export function pageOf<Row>(rows: readonly Row[], limit: number, toCursor: (last: Row) => string): Page<Row> {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return { items, next_cursor: rows.length > limit && last !== undefined ? toCursor(last) : null }
}

/** The same page with each item in another shape. */
export function mapPage<From, To>(page: Page<From>, shape: (item: From) => To): Page<To> {
  return { items: page.items.map(shape), next_cursor: page.next_cursor }
}
