import { Migration } from '@mikro-orm/migrations'

/** How long and how often a store's deliveries are refused, and deliveries for domains that no merchant claims. */
export class Migration00041RefusedDeliveries extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  'alter table "stores" add column "refused_since" bigint null',
  'alter table "stores" add column "refused_count" int not null default 0',
  'alter table "stores" add column "rejecting_sent_at" bigint null',
  'create index "stores_refused" on "stores" ("id") where refused_since is not null',
  `create table "unclaimed_domains" (
    "shop_domain" text not null,
    "deliveries" int not null,
    "first_at" bigint not null,
    "last_at" bigint not null,
    primary key ("shop_domain")
  )`,
]
