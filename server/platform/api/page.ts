import type { z } from 'zod'
import { jsonOrNull } from '../../../shared/json.ts'
import { idParam } from '../../../shared/schemas/common.ts'
import { Refusal } from './refusal.ts'

/** A list response, with wire names. */
export interface Page<Item> {
  items: Item[]
  next_cursor: string | null
}

/** A cursor for the last row of a page: base64url of JSON, opaque to clients. */
export function encodeCursor(key: unknown): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url')
}

/**
 * Decodes a cursor of `encodeCursor`; `null` if none is given. Refuses with `validation_failed` if the cursor does not match
 * `key`, which must be as strict as the columns it is compared with.
 */
export function decodeCursor<Key extends z.ZodType>(
  text: string | undefined,
  key: Key,
): z.output<Key> | null {
  if (text === undefined) return null
  const parsed = key.safeParse(jsonOrNull(Buffer.from(text, 'base64url').toString('utf8')))
  if (parsed.success) return parsed.data
  const detail = 'The cursor does not belong to this list. Use the next_cursor of the previous page.'
  const issues = [{ path: 'cursor', message: 'must be the next_cursor of the previous page' }]
  throw new Refusal('validation_failed', detail, { issues })
}

/** A page from up to `limit + 1` rows; the extra row tells that there is a next page. */
export function pageOf<Row>(rows: readonly Row[], limit: number, toCursor: (last: Row) => string): Page<Row> {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return { items, next_cursor: rows.length > limit && last !== undefined ? toCursor(last) : null }
}

/** Which page of a list. */
export interface PageRequest {
  limit: number
  cursor?: string | undefined
}

/**
 * A page of rows, newest first: `read` gives up to `limit` rows before the id `before`. Refuses a cursor that is
 * not this list's with `validation_failed`.
 */
export async function pageById<Row extends { id: string }>(
  { limit, cursor }: PageRequest,
  read: (request: { before: string | null; limit: number }) => Promise<readonly Row[]>,
): Promise<Page<Row>> {
  const rows = await read({ before: decodeCursor(cursor, idParam), limit: limit + 1 })
  return pageOf(rows, limit, (last) => encodeCursor(last.id))
}

/** Maps the items of a page. */
export function mapPage<From, To>(page: Page<From>, shape: (item: From) => To): Page<To> {
  return { items: page.items.map(shape), next_cursor: page.next_cursor }
}
