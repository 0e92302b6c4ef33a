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

const CLICK_KINDS = "kind in ('visit', 'bot', 'prefetch', 'head', 'embedded')"

const STATEMENTS = [
  'alter table "clicks" drop constraint "clicks_kind_check"',
  `alter table "clicks" add constraint "clicks_kind_check" check (${CLICK_KINDS})`,
  `create table "sale_decisions" (
    "sale_id" uuid not null,
    "event_id" uuid not null,
    "decided_at" bigint not null,
    "receipt" text not null,
    primary key ("sale_id")
  )`,
  `alter table "sale_decisions" add constraint "sale_decisions_sale_id_foreign"
    foreign key ("sale_id") references "sales" ("id") on update no action on delete restrict`,
  'alter table "sale_decisions" add constraint "sale_decisions_event" unique ("event_id")',
  `create trigger "sale_decisions_append_only" before update or delete on "sale_decisions"
    for each row execute function refuse_change()`,
  `create trigger "sale_decisions_no_truncate" before truncate on "sale_decisions"
    for each statement execute function refuse_change()`,
  'alter table "sales" add column "decided_at" bigint null',
  'create index "sales_decided_again" on "sales" ("decided_at") where decided_at is not null',
  'drop trigger if exists "sales_append_only" on "sales"',
  `create trigger "sales_refuse_delete" before delete on "sales"
    for each row execute function refuse_change()`,
  `create function refuse_sale_update() returns trigger language plpgsql as $$
    begin
      if not (${ALLOWED_SALE_UPDATE}) then raise exception 'this change of sales is refused'; end if;
      return new;
    end $$`,
  `create trigger "sales_one_update" before update on "sales"
    for each row execute function refuse_sale_update()`,
  `create trigger "sales_refer_updated" after update on "sales"
    referencing new table as added for each statement execute function refuse_lost_sales()`,
  'alter table "sales" add column "buyer_name_matches" int not null default 0',
  'drop index "sales_link"',
  'create index "sales_link" on "sales" ("link_id", "click_id")',
  'alter table "inbound_events" add column "triggered_at" bigint null',
  'alter table "link_days" add column "clicks" int not null default 0',
  'alter table "link_days" add column "untracked_visits" int not null default 0',
  'update "link_days" set "clicks" = "visits"',
]
