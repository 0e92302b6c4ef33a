import { type AliasableExpression, sql } from 'kysely'
import type { Role } from '../../../shared/schemas/common.ts'
import type { Queries } from './database.ts'

/** Whose rows are read: a merchant's, of own stores, or a creator's, of own links. */
export type OwnScope = { merchantId: string } | { creatorId: string }

/** `all` is for admins and the operator. */
export type ScanScope = OwnScope | 'all'

/** The rows of a merchant or creator. */
export function ownScope({ userId, role }: { userId: string; role: Role }): OwnScope {
  return role === 'merchant' ? { merchantId: userId } : { creatorId: userId }
}

/**
 * One page of a scan: the `size` newest rows in scope with ids below `below`. The period, from `from` (epoch ms, inclusive) to `to`
 * (exclusive), filters only these rows: a statement that searched the whole table by time would block SQLite.
 */
export interface ScanPage {
  below: string
  size: number
  from: number | null
  to: number | null
}

/** The start of a scan. */
export const ABOVE_ALL_IDS = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** The `below` of a scan that begins with this id. */
export function idAfter(id: string): string {
  const next = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0')
  return next.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** `last` is the smallest id of the page; `null` after the last page. */
interface ScanItems<Item> {
  items: Item[]
  last: string | null
}

export interface ScanCount {
  rows: number
  /** The greatest and the smallest id of the page. */
  first: string | null
  last: string | null
}

/** A resource read from its newest row down, as one caller sees it, in pages of bounded work. */
export interface KeysetScan<Item> {
  count(page: ScanPage): Promise<ScanCount>
  read(page: ScanPage): Promise<ScanItems<Item>>
}

/** Whether a row lies in the period. A row without a time is outside the scope. */
export function inPeriod({ from, to }: ScanPage, createdAt: number | null): createdAt is number {
  return createdAt !== null && createdAt >= (from ?? 0) && createdAt < (to ?? Number.MAX_SAFE_INTEGER)
}

/** The rows of a page, newest first, that lie in the period, as items. */
export function pageItems<Row extends { id: string; created_at: number | null }, Item>(
  page: ScanPage,
  rows: readonly Row[],
  shape: (row: Row) => Item,
): ScanItems<Item> {
  const wanted = rows.filter((row) => inPeriod(page, row.created_at))
  return { items: wanted.map(shape), last: rows.at(-1)?.id ?? null }
}

/** Counts inside the database. `rows` is the page's query; a null `created_at` marks a row outside the scope. */
export function countRows(
  db: Queries,
  page: ScanPage,
  rows: AliasableExpression<{ id: string; created_at: number | null }>,
): Promise<ScanCount> {
  const from = page.from ?? 0
  const to = page.to ?? Number.MAX_SAFE_INTEGER
  return db
    .selectFrom(rows.as('page'))
    .select([
      sql<number>`count(*) filter (where created_at >= ${from} and created_at < ${to})`.as('rows'),
      sql<string | null>`max(cast(id as text))`.as('first'),
      sql<string | null>`min(cast(id as text))`.as('last'),
    ])
    .executeTakeFirstOrThrow()
}
