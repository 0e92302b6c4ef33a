import { Migration } from '@mikro-orm/migrations'
import { ALLOWED_COUPON_UPDATE, STATUS_SEQUENCE, STATUSES_OF_EARLIER_OFFERS } from '../guards.ts'

/** Coupon codes of links, the history of offers' statuses, and which coupon code earned a sale's commission. */
export class Migration00025Coupons extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `create table "link_coupons" (
    "id" uuid not null,
    "link_id" uuid not null,
    "merchant_id" uuid not null,
    "code" text not null,
    "starts_at" bigint not null,
    "ends_at" bigint null,
    primary key ("id"),
    constraint "link_coupons_dates_check" check (ends_at is null or ends_at >= starts_at)
  )`,
  `alter table "link_coupons" add constraint "link_coupons_link_id_foreign"
    foreign key ("link_id") references "affiliate_links" ("id") on update no action on delete restrict`,
  `alter table "link_coupons" add constraint "link_coupons_merchant_id_foreign"
    foreign key ("merchant_id") references "users" ("id") on update no action on delete restrict`,
  'create unique index "link_coupons_code_in_force" on "link_coupons" ("merchant_id", "code") where ends_at is null',
  'create unique index "link_coupons_link_in_force" on "link_coupons" ("link_id") where ends_at is null',
  'create index "link_coupons_code" on "link_coupons" ("merchant_id", "code", "starts_at")',
  'create index "link_coupons_link" on "link_coupons" ("link_id", "starts_at")',
  `create trigger "link_coupons_refuse_delete" before delete on "link_coupons"
    for each row execute function refuse_change()`,
  `create trigger "link_coupons_refuse_update" before update on "link_coupons"
    for each row when (not (${ALLOWED_COUPON_UPDATE})) execute function refuse_change()`,
  `create table "offer_status_changes" (
    "offer_id" uuid not null,
    "sequence" int not null,
    "status" text not null,
    "changed_at" bigint not null,
    primary key ("offer_id", "sequence"),
    constraint "offer_status_changes_status_check" check (status in ('draft', 'live', 'paused', 'ended'))
  )`,
  `alter table "offer_status_changes" add constraint "offer_status_changes_offer_id_foreign"
    foreign key ("offer_id") references "offers" ("id") on update no action on delete restrict`,
  STATUSES_OF_EARLIER_OFFERS,
  `create function add_offer_status() returns trigger language plpgsql as $$
    begin
      insert into offer_status_changes (offer_id, sequence, status, changed_at)
      values (new.id, ${STATUS_SEQUENCE}, new.status, new.updated_at);
      return null;
    end $$`,
  `create trigger "offers_add_status" after insert on "offers" for each row execute function add_offer_status()`,
  `create trigger "offers_change_status" after update of status on "offers"
    for each row when (new.status <> old.status) execute function add_offer_status()`,
  `create trigger "offer_status_changes_append_only" before update or delete on "offer_status_changes"
    for each row execute function refuse_change()`,
  ...['link_coupons', 'offer_status_changes'].map(
    (table) => `create trigger "${table}_no_truncate" before truncate on "${table}"
      for each statement execute function refuse_change()`,
  ),
  'alter table "sales" add column "coupon_code" text null',
  'create index "sales_coupon" on "sales" ("link_id", "id") where coupon_code is not null',
]
