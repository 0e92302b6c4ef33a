import { Migration } from '@mikro-orm/migrations'

/** Only what SQLite notes in the schema: the table of clicks may be huge, and none of its rows is touched. */
export class Migration00007RepeatClicks extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `alter table "click_counts" add column "unique_clicks" integer not null default 0`,
  // Which of the former visits were repeated nobody knows any more.
  `update "click_counts" set "unique_clicks" = "clicks"`,
  `alter table "clicks" add column "repeated" integer not null default 0`,
]
