import { v7 } from 'uuid'

/** The only source of ids: UUIDv7. */
export interface Ids {
  next(): string
}

/** Ids of one process are in ascending order. */
export const systemIds: Ids = { next: () => v7() }

/** The owner of the platform's own accounts in the journal. */
export const NIL_ID = '00000000-0000-0000-0000-000000000000'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a text from outside is a UUID; PostgreSQL fails on a comparison with anything else. */
export function isId(text: string): boolean {
  return UUID.test(text)
}

/** The latest time that fits into a UUIDv7. */
const MAX_TIME = 2 ** 48 - 1

/** The smallest UUIDv7 that can be made at `time` (epoch ms): a bound for scans along the key. */
export function firstIdAt(time: number): string {
  const hex = Math.min(Math.max(0, time), MAX_TIME).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7000-8000-000000000000`
}

/** When a UUIDv7 was made, epoch ms. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
