import { Migration } from '@mikro-orm/migrations'
import { firstIdAt } from '../../platform/ids.ts'

const HOUR_MS = 3_600_000

/**
 * Visits that are not yet part of the counts, written with the clicks themselves by a trigger, so that no clock decides which clicks are
 * counted. Also the processes that run, and what they count together.
 */
export class Migration00030SharedState extends Migration {
  override up(): void {
    for (const statement of statements(firstIdAt(Date.now() - HOUR_MS))) this.addSql(statement)
  }
}

const VISITS = "kind = 'visit' and tracked = 1"
const COUNTS = 'count(*) as visits, count(*) filter (where repeated = 0) as unique_visits'

/** Reads all clicks before `recent`, an id, while clicks are still written, and the few after it while they wait. */
const statements = (recent: string) => [
  `create table "processes" (
    "id" uuid not null,
    "host" text not null,
    "pid" int not null,
    "roles" text not null,
    "money_settings" text not null,
    "seen_at" bigint not null,
    primary key ("id")
  )`,
  `create unlogged table "rate_limits" (
    "key" text not null primary key,
    "points" int not null,
    "expire" bigint null
  )`,
  `create unlogged table "counted_visitors" (
    "link_id" uuid not null,
    "visitor" text not null,
    "counted_at" bigint not null,
    primary key ("link_id", "visitor")
  )`,
  `create table "uncounted_clicks" (
    "id" uuid not null,
    "link_id" uuid not null,
    "day" int not null,
    "visits" int not null,
    "unique_visits" int not null,
    "clicks" int not null,
    "untracked_visits" int not null,
    primary key ("id")
  )`,
  `create temporary table "former_clicks" on commit drop as
    select link_id, ${COUNTS} from clicks where id < '${recent}' and ${VISITS} group by link_id`,
  `create function note_uncounted_clicks() returns trigger language plpgsql as $$
    begin
      insert into uncounted_clicks (id, link_id, day, visits, unique_visits, clicks, untracked_visits)
      select cast(min(cast(id as text)) as uuid), link_id, created_at / 86400000,
        count(*) filter (where ${VISITS}), count(*) filter (where ${VISITS} and repeated = 0),
        count(*) filter (where tracked = 1), count(*) filter (where kind = 'visit' and tracked = 0)
      from written where kind = 'visit' or tracked = 1
      group by link_id, created_at / 86400000;
      return null;
    end $$`,
  `create trigger "clicks_note_uncounted" after insert on "clicks" referencing new table as written
    for each statement execute function note_uncounted_clicks()`,
  // What the roll-up by time had not reached or has missed. A count may be greater, since old clicks may be gone.
  `insert into uncounted_clicks (id, link_id, day, visits, unique_visits, clicks, untracked_visits)
    select gen_random_uuid(), link_id, 0, visits, unique_visits, 0, 0 from (
      select present.link_id,
        greatest(present.visits - coalesce(counted.clicks, 0), coalesce(tail.visits, 0)) as visits,
        greatest(present.unique_visits - coalesce(counted.unique_clicks, 0), coalesce(tail.unique_visits, 0)) as unique_visits
      from (
        select link_id, sum(visits) as visits, sum(unique_visits) as unique_visits from (
          select link_id, visits, unique_visits from former_clicks
          union all
          select link_id, ${COUNTS} from clicks where id >= '${recent}' and ${VISITS} group by link_id
        ) as part group by link_id
      ) as present
      left join click_counts as counted on counted.link_id = present.link_id
      left join (
        select link_id, ${COUNTS} from clicks
        where id >= cast((select value from watermarks where name = 'clicks') as uuid) and ${VISITS}
        group by link_id
      ) as tail on tail.link_id = present.link_id
    ) as missing where visits > 0 or unique_visits > 0`,
]
