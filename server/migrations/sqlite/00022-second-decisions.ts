import { Migration } from '@mikro-orm/migrations'
import { ALLOWED_SALE_UPDATE } from '../guards.ts'

/**
 * Second decisions of sales, with the former ones; clicks from embedded elements; and what the watches over stores and links need:
 * the time a store's event was triggered (epoch ms), all tracked clicks and untracked visits by day, orders by click.
 */
export class Migration00022SecondDecisions extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const CLICK_KINDS =
  "kind = 'visit' or kind = 'bot' or kind = 'prefetch' or kind = 'head' or kind = 'embedded'"

const STATEMENTS = [
  'alter table "clicks" drop constraint "clicks_kind_check"',
  `alter table "clicks" add constraint "clicks_kind_check" check (${CLICK_KINDS})`,
  `create table "sale_decisions" (
    "sale_id" text not null primary key,
    "event_id" text not null,
    "decided_at" bigint not null,
    "receipt" text not null,
    constraint "sale_decisions_sale_id_foreign" foreign key ("sale_id") references "sales" ("id") on update no action on delete restrict
  )`,
  'create unique index "sale_decisions_event" on "sale_decisions" ("event_id")',
  ...['update', 'delete'].map(
    (change) => `create trigger "sale_decisions_refuse_${change}" before ${change} on "sale_decisions"
      begin select raise(abort, 'rows of sale_decisions are only ever added'); end`,
  ),
  'alter table "sales" add column "decided_at" bigint null',
  'create index "sales_decided_again" on "sales" ("decided_at") where decided_at is not null',
  'drop trigger if exists "sales_refuse_update"',
  `create trigger "sales_refuse_update" before update on "sales" when not (${ALLOWED_SALE_UPDATE})
    begin select raise(abort, 'this change of sales is refused'); end`,
  'alter table "sales" add column "buyer_name_matches" integer not null default 0',
  'drop index "sales_link"',
  'create index "sales_link" on "sales" ("link_id", "click_id")',
  'alter table "inbound_events" add column "triggered_at" bigint null',
  'alter table "link_days" add column "clicks" integer not null default 0',
  'alter table "link_days" add column "untracked_visits" integer not null default 0',
  'update "link_days" set "clicks" = "visits"',
]
