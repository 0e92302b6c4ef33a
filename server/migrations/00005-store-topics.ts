import type { Ddl } from './ddl.ts'

/** What stores send besides paid orders, so that a webhook with another event is noticed. */
export const up = (_: Ddl): string[] =>
  ['paid_events', 'other_events'].map(
    (column) => `alter table "store_days" add column "${column}" integer not null default 0`,
  )
