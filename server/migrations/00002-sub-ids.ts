import type { Ddl } from './ddl.ts'

/** The sub id of a click, and visits by link, sub id and local day. Clicks that are not counted yet are kept by quarters of an hour. */
export const up = ({ id, onSqlite, onPostgres }: Ddl): string[] => [
  'alter table "clicks" add column "sub_id" text',

  onSqlite('drop trigger "clicks_note_uncounted"'),
  onPostgres('drop trigger "clicks_note_uncounted" on "clicks"'),
  'create table "uncounted_before" as select * from "uncounted_clicks"',
  'drop table "uncounted_clicks"',
  `create table "uncounted_clicks" (
    "id" ${id} not null,
    "slot" integer not null,
    "sub_id" text not null,
    "link_id" ${id} not null,
    "visits" integer not null,
    "unique_visits" integer not null,
    "clicks" integer not null,
    "untracked_visits" integer not null,
    primary key ("id", "slot", "sub_id")
  )${onSqlite(' without rowid')}`,
  `insert into "uncounted_clicks" (id, slot, sub_id, link_id, visits, unique_visits, clicks, untracked_visits)
    select id, day * 96, '', link_id, visits, unique_visits, clicks, untracked_visits from "uncounted_before"`,
  'drop table "uncounted_before"',
  onSqlite(`create trigger "clicks_note_uncounted" after insert on "clicks" when new.kind = 'visit' or new.tracked = 1
    begin
      insert into uncounted_clicks (id, slot, sub_id, link_id, visits, unique_visits, clicks, untracked_visits)
      values (new.link_id, new.created_at / 900000, coalesce(new.sub_id, ''), new.link_id,
        new.kind = 'visit' and new.tracked = 1, new.kind = 'visit' and new.tracked = 1 and new.repeated = 0,
        new.tracked, new.kind = 'visit' and new.tracked = 0)
      on conflict do update set visits = visits + excluded.visits, unique_visits = unique_visits + excluded.unique_visits,
        clicks = clicks + excluded.clicks, untracked_visits = untracked_visits + excluded.untracked_visits;
    end`),
  onPostgres(`create or replace function note_uncounted_clicks() returns trigger language plpgsql as $$
    begin
      insert into uncounted_clicks (id, slot, sub_id, link_id, visits, unique_visits, clicks, untracked_visits)
      select cast(min(cast(id as text)) as uuid), created_at / 900000, coalesce(sub_id, ''), link_id,
        count(*) filter (where kind = 'visit' and tracked = 1),
        count(*) filter (where kind = 'visit' and tracked = 1 and repeated = 0),
        count(*) filter (where tracked = 1), count(*) filter (where kind = 'visit' and tracked = 0)
      from written where kind = 'visit' or tracked = 1
      group by link_id, created_at / 900000, coalesce(sub_id, '');
      return null;
    end $$`),
  onPostgres(`create trigger "clicks_note_uncounted" after insert on "clicks" referencing new table as written
    for each statement execute function note_uncounted_clicks()`),

  `create table "click_days" (
    "link_id" ${id} not null,
    "sub_id" text not null,
    "day" integer not null,
    "visits" integer not null,
    "unique_visits" integer not null,
    primary key ("link_id", "sub_id", "day")
  )`,
]
