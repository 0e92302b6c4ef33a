import { Migration } from '@mikro-orm/migrations'

/** Uncounted clicks as a row for each: grouping them takes longer than writing them. */
export class Migration00034NoteClicks extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `alter table "uncounted_clicks" drop constraint "uncounted_clicks_pkey", add primary key ("id", "day")`,
  `create or replace function note_uncounted_clicks() returns trigger language plpgsql as $$
    begin
      insert into uncounted_clicks (id, link_id, day, visits, unique_visits, clicks, untracked_visits)
      select id, link_id, created_at / 86400000, cast(kind = 'visit' and tracked = 1 as int),
        cast(kind = 'visit' and tracked = 1 and repeated = 0 as int), tracked, cast(kind = 'visit' and tracked = 0 as int)
      from written where kind = 'visit' or tracked = 1;
      return null;
    end $$`,
]
