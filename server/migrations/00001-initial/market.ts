import type { Ddl } from '../ddl.ts'

const LINK_COLUMNS = [
  'id',
  'slug',
  'application_id',
  'offer_id',
  'merchant_id',
  'creator_id',
  'commission_rate',
  'attribution_window_days',
  'product_ids',
  'created_at',
]

const SEARCH_ON_SQLITE = [
  `create table "offer_search_rows" (
    "number" integer not null primary key,
    "offer_id" text not null unique,
    constraint "offer_search_rows_offer_id_foreign" foreign key ("offer_id") references "offers" ("id") on delete restrict
  )`,
  `create virtual table "offer_search" using fts5(
    words, content='', contentless_delete=1, detail=none, prefix='1 2 3',
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
  )`,
  `create trigger "offers_search_insert" after insert on "offers" begin
    insert into offer_search_rows (offer_id) values (new.id);
    insert into offer_search (rowid, words) values (last_insert_rowid(), new.search_words);
  end`,
  `create trigger "offers_search_update" after update of search_words on "offers"
    when old.search_words <> new.search_words begin
    update offer_search set words = new.search_words
      where rowid = (select number from offer_search_rows where offer_id = new.id);
  end`,
  `create trigger "offers_search_delete" before delete on "offers" begin
    delete from offer_search where rowid = (select number from offer_search_rows where offer_id = old.id);
    delete from offer_search_rows where offer_id = old.id;
  end`,
]

/**
 * The words come folded and split, so no text search configuration, which would depend on the server, reads them. Offers are written
 * seldom: no list of pending entries that every search would have to read through.
 */
const SEARCH_ON_POSTGRESQL = [
  `alter table "offers" add column "search_vector" tsvector
    generated always as (array_to_tsvector(string_to_array(nullif(search_words, ''), ' '))) stored`,
  'create index "offers_search" on "offers" using gin ("search_vector") with (fastupdate = off)',
]

/** Offers, applications, links and clicks. */
export function market(ddl: Ddl): string[] {
  const { id, unique, oneOf, onlyAdded, neverDeleted, refuse, onSqlite, onPostgres } = ddl
  return [
    `create table "offers" (
      "id" ${id} not null primary key,
      "merchant_id" ${id} not null constraint "offers_merchant_id_foreign" references "users" ("id") on delete restrict,
      "title" text not null,
      "description" text,
      "product_url" text not null,
      "image_url" text,
      "category" text not null,
      "niche" text not null,
      "commission_rate" integer not null,
      "status" text not null,
      "status_count" integer not null,
      "attribution_window_days" integer not null,
      "product_ids" text,
      "vetting_verdict" text,
      "vetted_rate" integer,
      "rejection_scope" text,
      "vetting_reason" text,
      "category_key" text not null default '',
      "niche_key" text not null default '',
      "search_words" text not null default '',
      "created_at" bigint not null,
      "updated_at" bigint not null,
      "row_digest" text not null,
      constraint "offers_status_check" check (status in ('draft', 'live', 'paused', 'ended')),
      constraint "offers_rate_check" check (commission_rate between 1 and 9000)
    )`,
    `create index "offers_live_newest" on "offers" ("id", "commission_rate") where status = 'live'`,
    `create index "offers_live_high" on "offers" ("commission_rate", "id") where status = 'live'`,
    `create index "offers_live_low" on "offers" ("commission_rate", "id" DESC) where status = 'live'`,
    `create index "offers_category_newest" on "offers" ("category_key", "id", "commission_rate") where status = 'live'`,
    `create index "offers_category_high" on "offers" ("category_key", "commission_rate", "id") where status = 'live'`,
    `create index "offers_category_low" on "offers" ("category_key", "commission_rate", "id" DESC) where status = 'live'`,
    `create index "offers_niche_newest" on "offers" ("niche_key", "id", "commission_rate") where status = 'live'`,
    `create index "offers_niche_high" on "offers" ("niche_key", "commission_rate", "id") where status = 'live'`,
    `create index "offers_niche_low" on "offers" ("niche_key", "commission_rate", "id" DESC) where status = 'live'`,
    `create index "offers_category_niche_newest" on "offers" ("category_key", "niche_key", "id", "commission_rate") where status = 'live'`,
    `create index "offers_category_niche_high" on "offers" ("category_key", "niche_key", "commission_rate", "id") where status = 'live'`,
    `create index "offers_category_niche_low" on "offers" ("category_key", "niche_key", "commission_rate", "id" DESC) where status = 'live'`,
    'create index "offers_merchant_newest" on "offers" ("merchant_id", "id", "commission_rate")',
    'create index "offers_merchant_high" on "offers" ("merchant_id", "commission_rate", "id")',
    'create index "offers_merchant_low" on "offers" ("merchant_id", "commission_rate", "id" DESC)',
    ...SEARCH_ON_SQLITE.map(onSqlite),
    ...SEARCH_ON_POSTGRESQL.map(onPostgres),

    `create table "offer_status_changes" (
      "offer_id" ${id} not null constraint "offer_status_changes_offer_id_foreign" references "offers" ("id") on delete restrict,
      "sequence" integer not null,
      "status" text not null,
      "changed_at" bigint not null,
      "row_digest" text not null,
      primary key ("offer_id", "sequence"),
      constraint "offer_status_changes_status_check" check (status in ('draft', 'live', 'paused', 'ended'))
    )`,
    ...onlyAdded('offer_status_changes', ['offer_id', 'sequence', 'status', 'changed_at']),

    `create table "applications" (
      "id" ${id} not null primary key,
      "offer_id" ${id} not null constraint "applications_offer_id_foreign" references "offers" ("id") on delete restrict,
      "merchant_id" ${id} not null constraint "applications_merchant_id_foreign" references "users" ("id") on delete restrict,
      "creator_id" ${id} not null constraint "applications_creator_id_foreign" references "users" ("id") on delete restrict,
      "status" text not null,
      "message" text,
      "promotion_url" text,
      "decision_reason" text,
      "decided_at" bigint,
      "created_at" bigint not null,
      "row_digest" text not null,
      constraint "applications_status_check" check (status in ('pending', 'approved', 'rejected'))
    )`,
    'create index "applications_offer" on "applications" ("offer_id", "id")',
    'create index "applications_merchant" on "applications" ("merchant_id", "id")',
    'create index "applications_creator" on "applications" ("creator_id", "id")',
    `create unique index "applications_one_alive" on "applications" ("offer_id", "creator_id") where status in ('pending', 'approved')`,

    `create table "affiliate_links" (
      "id" ${id} not null primary key,
      "slug" text not null,
      "application_id" ${id} not null constraint "affiliate_links_application_id_foreign" references "applications" ("id") on delete restrict,
      "offer_id" ${id} not null constraint "affiliate_links_offer_id_foreign" references "offers" ("id") on delete restrict,
      "merchant_id" ${id} not null constraint "affiliate_links_merchant_id_foreign" references "users" ("id") on delete restrict,
      "creator_id" ${id} not null constraint "affiliate_links_creator_id_foreign" references "users" ("id") on delete restrict,
      "commission_rate" integer not null,
      "attribution_window_days" integer not null,
      "product_ids" text,
      "created_at" bigint not null,
      "row_digest" text not null
    )`,
    unique('affiliate_links', 'affiliate_links_slug_unique', 'slug'),
    unique('affiliate_links', 'affiliate_links_application_id_unique', 'application_id'),
    'create index "affiliate_links_creator" on "affiliate_links" ("creator_id", "id")',
    'create index "affiliate_links_offer" on "affiliate_links" ("offer_id")',
    ...onlyAdded('affiliate_links', LINK_COLUMNS),

    `create table "link_coupons" (
      "id" ${id} not null primary key,
      "link_id" ${id} not null constraint "link_coupons_link_id_foreign" references "affiliate_links" ("id") on delete restrict,
      "merchant_id" ${id} not null constraint "link_coupons_merchant_id_foreign" references "users" ("id") on delete restrict,
      "code" text not null,
      "starts_at" bigint not null,
      "ends_at" bigint,
      "row_digest" text not null,
      constraint "link_coupons_dates_check" check (ends_at is null or ends_at >= starts_at)
    )`,
    'create index "link_coupons_code" on "link_coupons" ("merchant_id", "code", "starts_at")',
    'create index "link_coupons_link" on "link_coupons" ("link_id", "starts_at")',
    'create unique index "link_coupons_code_in_force" on "link_coupons" ("merchant_id", "code") where ends_at is null',
    'create unique index "link_coupons_link_in_force" on "link_coupons" ("link_id") where ends_at is null',
    ...neverDeleted('link_coupons'),
    // The two updates: the coupon code ends, and APP_KEY has changed.
    refuse(
      'update',
      'link_coupons',
      'link_coupons_refuse_update',
      `not (
    (old.ends_at is null or coalesce(new.ends_at, 0) = old.ends_at) and new.row_digest <> old.row_digest
    and new.id = old.id and new.link_id = old.link_id and new.merchant_id = old.merchant_id
    and new.code = old.code and new.starts_at = old.starts_at)`,
    ),

    `create table "clicks" (
      "id" ${id} not null primary key,
      "link_id" ${id} not null,
      "tracked" integer not null,
      "kind" text not null,
      "repeated" integer not null default 0,
      "created_at" bigint not null,
      constraint "clicks_kind_check" check (${oneOf('kind', 'visit', 'bot', 'prefetch', 'head', 'embedded')})
    )`,

    `create table "click_counts" (
      "link_id" ${id} not null primary key,
      "clicks" integer not null,
      "unique_clicks" integer not null default 0
    )`,

    `create table "uncounted_clicks" (
      "id" ${id} not null,
      "day" integer not null,
      "link_id" ${id} not null,
      "visits" integer not null,
      "unique_visits" integer not null,
      "clicks" integer not null,
      "untracked_visits" integer not null,
      primary key ("id", "day")
    )${onSqlite(' without rowid')}`,
    onSqlite(`create trigger "clicks_note_uncounted" after insert on "clicks" when new.kind = 'visit' or new.tracked = 1
    begin
      insert into uncounted_clicks (id, link_id, day, visits, unique_visits, clicks, untracked_visits)
      values (new.link_id, new.link_id, new.created_at / 86400000,
        new.kind = 'visit' and new.tracked = 1, new.kind = 'visit' and new.tracked = 1 and new.repeated = 0,
        new.tracked, new.kind = 'visit' and new.tracked = 0)
      on conflict do update set visits = visits + excluded.visits, unique_visits = unique_visits + excluded.unique_visits,
        clicks = clicks + excluded.clicks, untracked_visits = untracked_visits + excluded.untracked_visits;
    end`),
    onPostgres(`create function note_uncounted_clicks() returns trigger language plpgsql as $$
    begin
      insert into uncounted_clicks (id, link_id, day, visits, unique_visits, clicks, untracked_visits)
      select cast(min(cast(id as text)) as uuid), link_id, created_at / 86400000,
        count(*) filter (where kind = 'visit' and tracked = 1),
        count(*) filter (where kind = 'visit' and tracked = 1 and repeated = 0),
        count(*) filter (where tracked = 1), count(*) filter (where kind = 'visit' and tracked = 0)
      from written where kind = 'visit' or tracked = 1
      group by link_id, created_at / 86400000;
      return null;
    end $$`),
    onPostgres(`create trigger "clicks_note_uncounted" after insert on "clicks" referencing new table as written
    for each statement execute function note_uncounted_clicks()`),

    `create ${onPostgres('unlogged ')} table "counted_visitors" (
      "link_id" ${id} not null,
      "visitor" text not null,
      "counted_at" bigint not null,
      primary key ("link_id", "visitor")
    )`,

    `create table "link_days" (
      "link_id" ${id} not null,
      "day" integer not null,
      "visits" integer not null,
      "clicks" integer not null default 0,
      "untracked_visits" integer not null default 0,
      primary key ("link_id", "day")
    )`,
    'create index "link_days_day" on "link_days" ("day")',
  ]
}
