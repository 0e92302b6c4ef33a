import { Migration } from '@mikro-orm/migrations'

/** The key of SQLite's table, which has a row for each link and day. */
export class Migration00034NoteClicks extends Migration {
  override up(): void {
    this.addSql(
      'alter table "uncounted_clicks" drop constraint "uncounted_clicks_pkey", add primary key ("id", "day")',
    )
  }
}
