import { Migration } from '@mikro-orm/migrations'
import { ALLOWED_COUPON_UPDATE, STATUS_SEQUENCE, STATUSES_OF_EARLIER_OFFERS } from '../guards.ts'

/** Coupon codes of links, the history of offers' statuses, and which coupon code earned a sale's commission. */
export class Migration00025Coupons extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const ADD_STATUS = `begin
    insert into offer_status_changes (offer_id, sequence, status, changed_at)
      values (new.id, ${STATUS_SEQUENCE}, new.status, new.updated_at); end`

const STATEMENTS = [
  `create table "link_coupons" (
    "id" text not null primary key,
    "link_id" text not null,
    "merchant_id" text not null,
    "code" text not null,
    "starts_at" bigint not null,
    "ends_at" bigint null,
    constraint "link_coupons_link_id_foreign" foreign key ("link_id") references "affiliate_links" ("id") on update no action on delete restrict,
    constraint "link_coupons_merchant_id_foreign" foreign key ("merchant_id") references "users" ("id") on update no action on delete restrict,
    constraint "link_coupons_dates_check" check (ends_at is null or ends_at >= starts_at)
  )`,
  'create unique index "link_coupons_code_in_force" on "link_coupons" ("merchant_id", "code") where ends_at is null',
  'create unique index "link_coupons_link_in_force" on "link_coupons" ("link_id") where ends_at is null',
  'create index "link_coupons_code" on "link_coupons" ("merchant_id", "code", "starts_at")',
  'create index "link_coupons_link" on "link_coupons" ("link_id", "starts_at")',
  `create trigger "link_coupons_refuse_delete" before delete on "link_coupons"
    begin select raise(abort, 'rows of link_coupons never go'); end`,
  `create trigger "link_coupons_refuse_update" before update on "link_coupons" when not (${ALLOWED_COUPON_UPDATE})
    begin select raise(abort, 'this change of link_coupons is refused'); end`,
  `create table "offer_status_changes" (
    "offer_id" text not null,
    "sequence" integer not null,
    "status" text not null,
    "changed_at" bigint not null,
    constraint "offer_status_changes_offer_id_foreign" foreign key ("offer_id") references "offers" ("id") on update no action on delete restrict,
    constraint "offer_status_changes_status_check" check (status in ('draft', 'live', 'paused', 'ended')),
    primary key ("offer_id", "sequence")
  )`,
  STATUSES_OF_EARLIER_OFFERS,
  `create trigger "offers_add_status" after insert on "offers" ${ADD_STATUS}`,
  `create trigger "offers_change_status" after update of status on "offers" when new.status <> old.status ${ADD_STATUS}`,
  ...['update', 'delete'].map(
    (
      change,
    ) => `create trigger "offer_status_changes_refuse_${change}" before ${change} on "offer_status_changes"
      begin select raise(abort, 'rows of offer_status_changes are only ever added'); end`,
  ),
  'alter table "sales" add column "coupon_code" text null',
  'create index "sales_coupon" on "sales" ("link_id", "id") where coupon_code is not null',
]
