import { Migration } from '@mikro-orm/migrations'
import { DAYS_OF_EARLIER_SALES } from '../store-days.ts'

/** What each store sent by day, and when a delivery in its name was last refused. */
export class Migration00026StoreDays extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  'alter table "stores" add column "connected_at" bigint null',
  'alter table "stores" add column "last_refused_at" bigint null',
  'alter table "stores" add column "last_refusal" text null',
  `create table "store_days" (
    "store_id" uuid not null,
    "day" integer not null,
    "cart" integer not null,
    "landing" integer not null,
    "line" integer not null,
    "coupon" integer not null,
    "none" integer not null,
    "last_event_at" bigint not null,
    constraint "store_days_store_id_foreign" foreign key ("store_id") references "stores" ("id") on update no action on delete restrict,
    primary key ("store_id", "day")
  )`,
  DAYS_OF_EARLIER_SALES,
]
