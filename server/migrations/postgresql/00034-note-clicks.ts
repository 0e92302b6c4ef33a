import { Migration } from '@mikro-orm/migrations'

/** Uncounted clicks as one row for each insert of clicks: a row for each link takes longer to write. */
export class Migration00034NoteClicks extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `alter table "uncounted_clicks" drop constraint "uncounted_clicks_pkey", add primary key ("id", "day")`,
  `create table "uncounted_batches" ("id" uuid not null, "clicks" text not null, primary key ("id"))`,
  `create or replace function note_uncounted_clicks() returns trigger language plpgsql as $$
    begin
      insert into uncounted_batches (id, clicks)
      select gen_random_uuid(), json_agg(json_build_array(link_id, created_at / 86400000,
        cast(kind = 'visit' and tracked = 1 as int), cast(kind = 'visit' and tracked = 1 and repeated = 0 as int),
        tracked, cast(kind = 'visit' and tracked = 0 as int)))
      from written where kind = 'visit' or tracked = 1
      having count(*) > 0;
      return null;
    end $$`,
]
