import type { Ddl } from '../ddl.ts'

/** Accounts, their sessions, their encrypted accounts, and stores. */
export function people(ddl: Ddl): string[] {
  const { id, unique, neverDeleted, refuse, onPostgres } = ddl
  return [
    `create table "users" (
      "id" ${id} not null primary key,
      "email" text not null,
      "password_hash" text not null,
      "role" text not null,
      "display_name" text not null,
      "suspended_at" bigint,
      "created_at" bigint not null,
      "email_verified_at" bigint,
      "row_digest" text not null,
      constraint "users_role_check" check (role in ('merchant', 'creator', 'admin'))
    )`,
    unique('users', 'users_email_unique', 'email'),
    'create index "users_suspended" on "users" ("id") where suspended_at is not null',

    `create table "sessions" (
      "id" ${id} not null primary key,
      "user_id" ${id} not null constraint "sessions_user_id_foreign" references "users" ("id") on delete restrict,
      "token_hash" text not null,
      "created_at" bigint not null,
      "expires_at" bigint not null,
      "last_used_at" bigint,
      "address_prefix" text,
      "agent" text,
      "fresh_until" bigint,
      "setup_only" integer not null default 0,
      "row_digest" text not null
    )`,
    unique('sessions', 'sessions_token_hash_unique', 'token_hash'),
    'create index "sessions_user" on "sessions" ("user_id")',

    `create table "login_addresses" (
      "user_id" ${id} not null constraint "login_addresses_user_id_foreign" references "users" ("id") on delete restrict,
      "address_hash" text not null,
      "used_at" bigint not null,
      primary key ("user_id", "address_hash")
    )`,

    `create table "account_tokens" (
      "user_id" ${id} not null constraint "account_tokens_user_id_foreign" references "users" ("id") on delete restrict,
      "purpose" text not null,
      "token_hash" text not null,
      "created_at" bigint not null,
      "expires_at" bigint not null,
      "row_digest" text not null,
      primary key ("user_id", "purpose"),
      constraint "account_tokens_purpose_check" check (purpose in ('verify_email', 'password_reset'))
    )`,
    unique('account_tokens', 'account_tokens_token_hash_unique', 'token_hash'),

    `create table "second_factors" (
      "user_id" ${id} not null primary key constraint "second_factors_user_id_foreign" references "users" ("id") on delete restrict,
      "secret_encrypted" text not null,
      "created_at" bigint not null,
      "confirmed_at" bigint,
      "last_step" bigint not null,
      "row_digest" text not null
    )`,

    `create table "recovery_codes" (
      "user_id" ${id} not null constraint "recovery_codes_user_id_foreign" references "users" ("id") on delete restrict,
      "code_hash" text not null,
      "row_digest" text not null,
      primary key ("user_id", "code_hash")
    )`,

    `create table "payout_destinations" (
      "id" ${id} not null primary key,
      "user_id" ${id} not null constraint "payout_destinations_user_id_foreign" references "users" ("id") on delete restrict,
      "iban_encrypted" text not null,
      "iban_fingerprint" text not null,
      "iban_last4" text not null,
      "account_title" text not null,
      "effective_at" bigint not null,
      "created_at" bigint not null,
      "row_digest" text not null
    )`,
    'create index "payout_destinations_iban_fingerprint_index" on "payout_destinations" ("iban_fingerprint")',
    'create index "payout_destinations_user" on "payout_destinations" ("user_id", "effective_at")',
    ...neverDeleted('payout_destinations'),
    // The one update: APP_KEY has changed.
    refuse(
      'update',
      'payout_destinations',
      'payout_destinations_refuse_update',
      `not (
    (new.iban_encrypted <> old.iban_encrypted or new.row_digest <> old.row_digest)
    and new.id = old.id and new.user_id = old.user_id and new.iban_last4 = old.iban_last4
    and new.account_title = old.account_title and new.effective_at = old.effective_at
    and new.created_at = old.created_at)`,
    ),

    `create table "billing_accounts" (
      "id" ${id} not null primary key,
      "user_id" ${id} not null constraint "billing_accounts_user_id_foreign" references "users" ("id") on delete restrict,
      "kind" text not null,
      "account_encrypted" text not null,
      "account_last4" text not null,
      "created_at" bigint not null,
      "row_digest" text not null,
      constraint "billing_accounts_kind_check" check (kind in ('iban', 'raast_id'))
    )`,
    'create index "billing_accounts_user" on "billing_accounts" ("user_id", "created_at")',
    ...neverDeleted('billing_accounts'),
    // The one update: APP_KEY has changed.
    refuse(
      'update',
      'billing_accounts',
      'billing_accounts_refuse_update',
      `not (
    (new.account_encrypted <> old.account_encrypted or new.row_digest <> old.row_digest)
    and new.id = old.id and new.user_id = old.user_id and new.kind = old.kind
    and new.account_last4 = old.account_last4 and new.created_at = old.created_at)`,
    ),

    `create table "mailboxes" (
      "user_id" ${id} not null primary key,
      "fingerprint" text not null
    )`,
    'create index "mailboxes_fingerprint" on "mailboxes" ("fingerprint")',

    `create table "mail_opt_outs" (
      "user_id" ${id} not null constraint "mail_opt_outs_user_id_foreign" references "users" ("id") on delete restrict,
      "event" text not null,
      "created_at" bigint not null,
      primary key ("user_id", "event")
    )`,

    `create table "mails" (
      "id" ${id} not null primary key,
      "user_id" ${id} not null constraint "mails_user_id_foreign" references "users" ("id") on delete restrict,
      "address" text not null,
      "kind" text not null,
      "facts" text not null,
      "token_encrypted" text,
      "event_key" text,
      "state" text not null,
      "attempts" integer not null,
      "next_try_at" bigint not null,
      "lease_token" text,
      "lease_until" bigint not null,
      "last_error" text,
      "created_at" bigint not null,
      "give_up_at" bigint not null,
      "finished_at" bigint,
      "row_digest" text not null,
      constraint "mails_state_check" check (state in ('queued', 'sent', 'failed')),
      constraint "mails_finished_check" check ((state = 'queued') = (finished_at is null)),
      constraint "mails_token_check" check (state = 'queued' or token_encrypted is null)
    )`,
    `create index "mails_due" on "mails" ("next_try_at", "id") where state = 'queued'`,
    'create index "mails_address" on "mails" ("address", "created_at")',
    'create index "mails_finished" on "mails" ("finished_at") where finished_at is not null',
    unique('mails', 'mails_event', 'event_key'),

    `create table "stores" (
      "id" ${id} not null primary key,
      "merchant_id" ${id} not null constraint "stores_merchant_id_foreign" references "users" ("id") on delete restrict,
      "shop_domain" text not null,
      "created_at" bigint not null,
      "removed_at" bigint,
      "released_at" bigint,
      "first_event_at" bigint,
      "connected_at" bigint not null,
      "last_refused_at" bigint,
      "last_refusal" text,
      "refused_since" bigint,
      "refused_count" integer not null default 0,
      "rejecting_sent_at" bigint,
      "row_digest" text not null
    )`,
    'create index "stores_refused" on "stores" ("id") where refused_since is not null',
    'create index "stores_merchant" on "stores" ("merchant_id")',
    'create index "stores_domain" on "stores" ("shop_domain")',
    'create unique index "stores_claim_in_use" on "stores" ("merchant_id", "shop_domain") where removed_at is null',
    // PostgreSQL looks rows up once a statement and takes no lock on a store, which must stay its merchant's.
    ...neverDeleted('stores').map(onPostgres),
    onPostgres(
      refuse(
        'update',
        'stores',
        'stores_same_owner',
        'new.id <> old.id or new.merchant_id <> old.merchant_id',
      ),
    ),

    `create table "store_secrets" (
      "id" ${id} not null primary key,
      "store_id" ${id} not null constraint "store_secrets_store_id_foreign" references "stores" ("id") on delete restrict,
      "secret_encrypted" text not null,
      "fingerprint" text not null,
      "valid_until" bigint,
      "created_at" bigint not null
    )`,
    unique('store_secrets', 'store_secrets_fingerprint_unique', 'fingerprint'),
    'create index "store_secrets_store" on "store_secrets" ("store_id")',

    `create table "store_hosts" (
      "store_id" ${id} not null constraint "store_hosts_store_id_foreign" references "stores" ("id") on delete restrict,
      "host" text not null,
      "created_at" bigint not null,
      primary key ("store_id", "host")
    )`,

    `create table "store_days" (
      "store_id" ${id} not null constraint "store_days_store_id_foreign" references "stores" ("id") on delete restrict,
      "day" integer not null,
      "cart" integer not null,
      "landing" integer not null,
      "line" integer not null,
      "coupon" integer not null,
      "none" integer not null,
      "last_event_at" bigint not null,
      primary key ("store_id", "day")
    )`,

    `create table "unclaimed_domains" (
      "shop_domain" text not null primary key,
      "deliveries" integer not null,
      "first_at" bigint not null,
      "last_at" bigint not null
    )`,
  ]
}
