import { type AliasableExpression, sql } from 'kysely'
import type { Queries } from './database.ts'

/** Whose rows are read; `all` is for admins and the operator. */
export type WalkScope = { merchantId: string } | { creatorId: string } | 'all'

/**
 * One step of a walk: of the rows in scope with ids below `below` the `size` newest. Which of them lie between `from` (epoch ms,
 * inclusive) and `to` (exclusive) is asked of these few only: a statement that searched the whole table for rows of a
 * certain time would hold up everything else on SQLite. There is one bound, since SQLite seeks by one and passes
 * everything by for another.
 */
export interface Step {
  below: string
  size: number
  from: number | null
  to: number | null
}

/** The last place that an id can have: where a walk begins. */
export const ABOVE_ALL_IDS = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** The next id after one: the `below` of a walk that begins with that one. */
export function idAfter(id: string): string {
  const next = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0')
  return next.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** What a step came across: `last` is its smallest id, `null` when it found no row and the walk is over. */
export interface StepItems<Item> {
  items: Item[]
  last: string | null
}

export interface StepCount {
  rows: number
  /** The greatest and the smallest id that the step came across. */
  first: string | null
  last: string | null
}

/** A resource read from its newest row down, as one caller sees it, in steps of bounded work. */
export interface Walk<Item> {
  count(step: Step): Promise<StepCount>
  read(step: Step): Promise<StepItems<Item>>
}

/** Whether a row belongs to what is asked for; one without a time is somebody else's. */
export function inPeriod({ from, to }: Step, createdAt: number | null): createdAt is number {
  return createdAt !== null && createdAt >= (from ?? 0) && createdAt < (to ?? Number.MAX_SAFE_INTEGER)
}

/** A step's rows (newest first) as items, without those outside of the period. */
export function itemsOf<Row extends { id: string; created_at: number | null }, Item>(
  step: Step,
  rows: readonly Row[],
  shape: (row: Row) => Item,
): StepItems<Item> {
  const wanted = rows.filter((row) => inPeriod(step, row.created_at))
  return { items: wanted.map(shape), last: rows.at(-1)?.id ?? null }
}

/** Counts inside the database; `rows` is the step's own query, a null `created_at` marks what does not count. */
export function countRows(
  db: Queries,
  step: Step,
  rows: AliasableExpression<{ id: string; created_at: number | null }>,
): Promise<StepCount> {
  const from = step.from ?? 0
  const to = step.to ?? Number.MAX_SAFE_INTEGER
  return db
    .selectFrom(rows.as('step'))
    .select([
      sql<number>`coalesce(sum(case when created_at >= ${from} and created_at < ${to} then 1 else 0 end), 0)`.as(
        'rows',
      ),
      sql<string | null>`max(cast(id as text))`.as('first'),
      sql<string | null>`min(cast(id as text))`.as('last'),
    ])
    .executeTakeFirstOrThrow()
}
