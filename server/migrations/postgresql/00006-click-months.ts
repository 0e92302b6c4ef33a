import { Migration } from '@mikro-orm/migrations'
import { firstIdAt } from '../../platform/ids.ts'

/**
 * Clicks by month, and cheaper compression of the long texts. What is there already becomes the first part as it is, so
 * that nothing is copied; the worker adds the months to come, and what fits none of them has a part as well.
 */
export class Migration00006ClickMonths extends Migration {
  override up(): void {
    const now = new Date()
    const nextMonth = firstIdAt(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1))
    for (const statement of [...BY_MONTH(nextMonth), COMPRESSION]) this.addSql(statement)
  }
}

const BY_MONTH = (firstEnds: string) => [
  `alter table "clicks" rename to "clicks_first"`,
  `alter index "clicks_pkey" rename to "clicks_first_pkey"`,
  `create table "clicks" (
    "id" uuid not null,
    "link_id" uuid not null,
    "tracked" int not null,
    "kind" text not null,
    "created_at" bigint not null,
    primary key ("id")
  ) partition by range ("id")`,
  `alter table "clicks" add constraint "clicks_kind_check" check (kind in ('visit', 'bot', 'prefetch', 'head'))`,
  `alter table "clicks" attach partition "clicks_first" for values from (minvalue) to ('${firstEnds}')`,
  `create table "clicks_other" partition of "clicks" default`,
]

/** The default takes half of the webhooks' throughput; a server that was built without lz4 goes on with it. */
const COMPRESSION = `do $$ begin
    alter table "inbound_bodies" alter column "body" set compression lz4;
    alter table "sales" alter column "receipt" set compression lz4;
  exception when feature_not_supported then null;
  end $$`
