import { Migration } from '@mikro-orm/migrations'

/**
 * Visits that are not yet part of the counts, written with the clicks themselves by a trigger, so that no clock decides which clicks are
 * counted. Also the processes that run, and what they count together.
 */
export class Migration00030SharedState extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const VISITS = "kind = 'visit' and tracked = 1"
const COUNTS = 'count(*) as visits, sum(1 - repeated) as unique_visits'

const STATEMENTS = [
  `create table "processes" (
    "id" text not null primary key,
    "host" text not null,
    "pid" integer not null,
    "roles" text not null,
    "money_settings" text not null,
    "seen_at" bigint not null
  )`,
  `create table "rate_limits" (
    "key" text not null primary key,
    "points" integer not null,
    "expire" bigint null
  )`,
  `create table "counted_visitors" (
    "link_id" text not null,
    "visitor" text not null,
    "counted_at" bigint not null,
    primary key ("link_id", "visitor")
  )`,
  `create table "uncounted_clicks" (
    "id" text not null primary key,
    "link_id" text not null,
    "day" integer not null,
    "visits" integer not null,
    "unique_visits" integer not null,
    "clicks" integer not null,
    "untracked_visits" integer not null
  ) without rowid`,
  `create trigger "clicks_note_uncounted" after insert on "clicks" when new.kind = 'visit' or new.tracked = 1
    begin
      insert into uncounted_clicks (id, link_id, day, visits, unique_visits, clicks, untracked_visits)
      values (new.id, new.link_id, new.created_at / 86400000,
        new.kind = 'visit' and new.tracked = 1, new.kind = 'visit' and new.tracked = 1 and new.repeated = 0,
        new.tracked, new.kind = 'visit' and new.tracked = 0);
    end`,
  // What the roll-up by time had not reached or has missed. A count may be greater, since old clicks may be gone.
  `insert into uncounted_clicks (id, link_id, day, visits, unique_visits, clicks, untracked_visits)
    select lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8'
      || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))), link_id, 0, visits, unique_visits, 0, 0
    from (
      select present.link_id,
        max(present.visits - coalesce(counted.clicks, 0), coalesce(tail.visits, 0)) as visits,
        max(present.unique_visits - coalesce(counted.unique_clicks, 0), coalesce(tail.unique_visits, 0)) as unique_visits
      from (select link_id, ${COUNTS} from clicks where ${VISITS} group by link_id) as present
      left join click_counts as counted on counted.link_id = present.link_id
      left join (
        select link_id, ${COUNTS} from clicks
        where id >= (select value from watermarks where name = 'clicks') and ${VISITS}
        group by link_id
      ) as tail on tail.link_id = present.link_id
    ) as missing where visits > 0 or unique_visits > 0`,
]
