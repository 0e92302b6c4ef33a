import { v7 } from 'uuid'

/** The only source of ids: UUIDv7, in the order in which they were made. */
export interface Ids {
  next(): string
}

export const systemIds: Ids = { next: () => v7() }

/** The owner of the platform's own accounts in the journal. */
export const NIL_ID = '00000000-0000-0000-0000-000000000000'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a text from outside can be one of our ids at all: PostgreSQL refuses to compare anything else. */
export function isId(text: string): boolean {
  return UUID.test(text)
}

/** The last that a UUIDv7 has room for; far beyond any time on the wire. */
const LAST_MOMENT = 2 ** 48 - 1

/** The smallest UUIDv7 that can be made at `moment` (epoch ms): a bound for scans along the key. */
export function firstIdAt(moment: number): string {
  const hex = Math.min(Math.max(0, moment), LAST_MOMENT).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7000-8000-000000000000`
}
