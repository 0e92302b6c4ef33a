import { market } from './00001-initial/market.ts'
import { money } from './00001-initial/money.ts'
import { operation } from './00001-initial/operation.ts'
import { people } from './00001-initial/people.ts'
import type { Ddl } from './ddl.ts'

/** The schema of 0.2.0. May be edited until that is released, and never after. */
export const up = (ddl: Ddl): string[] => [
  ddl.onPostgres(`create function refuse_change() returns trigger language plpgsql as $$
    begin raise exception 'this change of % is refused', tg_table_name; end $$`),
  ...people(ddl),
  ...market(ddl),
  ...money(ddl),
  ...operation(ddl),
]
