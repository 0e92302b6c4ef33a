import { Migration } from '@mikro-orm/migrations'

/** Lets several merchants claim one shop domain, and adds the host names that a store's signed orders have shown. */
export class Migration00023StoreClaims extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `alter table "stores" add column "released_at" bigint null`,
  `alter table "stores" add column "first_event_at" bigint null`,
  `drop index "stores_domain_in_use"`,
  `create unique index "stores_claim_in_use" on "stores" ("merchant_id", "shop_domain") where removed_at is null`,
  `create index "stores_domain" on "stores" ("shop_domain")`,
  `create table "store_hosts" (
    "store_id" text not null,
    "host" text not null,
    "created_at" bigint not null,
    constraint "store_hosts_store_id_foreign" foreign key ("store_id") references "stores" ("id") on update no action on delete restrict,
    primary key ("store_id", "host")
  )`,
]
