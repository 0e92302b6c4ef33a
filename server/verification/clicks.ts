import { sql } from 'kysely'
import { NIL_ID } from '../platform/ids.ts'
import { type Invariant, sqlInvariant } from './invariant.ts'

/** What must hold of the counts of visits. */
export const CLICK_INVARIANTS: Invariant[] = [
  sqlInvariant({
    name: 'visits-counted',
    statement:
      'The count of each link has every tracked visit on record, and no more unless old clicks were removed.',
    table: 'clicks',
    // Reads all clicks, so only a full verification does.
    breaches: (scope) => sql`
      select 'link ' || link_id as subject, 'counted ' || sum(counted) || ' of ' || sum(present)
        || ' visits, of them ' || sum(unique_counted) || ' unique' as detail
      from (
        select link_id, 0 as present, clicks as counted, unique_clicks as unique_counted from click_counts
        union all
        select link_id, 0, visits, unique_visits from uncounted_clicks
        union all
        select link_id, count(*), 0, 0 from clicks where kind = 'visit' and tracked = 1 group by link_id
      ) as visits
      where ${sql.lit(scope.covered === null)}
      group by link_id
      having sum(counted) < sum(present) or sum(unique_counted) > sum(counted)
        or (sum(counted) > sum(present) and not exists (
          select 1 from watermarks where name = 'clicks pruned' and value > ${NIL_ID}))`,
  }),
]
