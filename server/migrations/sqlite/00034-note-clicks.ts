import { Migration } from '@mikro-orm/migrations'

/** Uncounted clicks as one row for each link and day, which is written faster than a row for each click. */
export class Migration00034NoteClicks extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  'drop trigger "clicks_note_uncounted"',
  'alter table "uncounted_clicks" rename to "former_uncounted_clicks"',
  `create table "uncounted_clicks" (
    "id" text not null,
    "link_id" text not null,
    "day" integer not null,
    "visits" integer not null,
    "unique_visits" integer not null,
    "clicks" integer not null,
    "untracked_visits" integer not null,
    primary key ("id", "day")
  ) without rowid`,
  'insert into "uncounted_clicks" select * from "former_uncounted_clicks"',
  'drop table "former_uncounted_clicks"',
  `create trigger "clicks_note_uncounted" after insert on "clicks" when new.kind = 'visit' or new.tracked = 1
    begin
      insert into uncounted_clicks (id, link_id, day, visits, unique_visits, clicks, untracked_visits)
      values (new.link_id, new.link_id, new.created_at / 86400000,
        new.kind = 'visit' and new.tracked = 1, new.kind = 'visit' and new.tracked = 1 and new.repeated = 0,
        new.tracked, new.kind = 'visit' and new.tracked = 0)
      on conflict do update set visits = visits + excluded.visits, unique_visits = unique_visits + excluded.unique_visits,
        clicks = clicks + excluded.clicks, untracked_visits = untracked_visits + excluded.untracked_visits;
    end`,
]
