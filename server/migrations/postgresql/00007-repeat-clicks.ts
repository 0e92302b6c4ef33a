import { Migration } from '@mikro-orm/migrations'

/** A constant default is noted in the catalogue only, for every part of the table: no row of the clicks is touched. */
export class Migration00007RepeatClicks extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `alter table "click_counts" add column "unique_clicks" int not null default 0`,
  // Which of the former visits were repeated nobody knows any more.
  `update "click_counts" set "unique_clicks" = "clicks"`,
  // Last, since every click waits from here to the end; readers and the roll-up take the two tables in this order too.
  `alter table "clicks" add column "repeated" int not null default 0`,
]
