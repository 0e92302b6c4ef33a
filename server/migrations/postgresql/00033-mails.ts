import { Migration } from '@mikro-orm/migrations'

/** E-mails, the links in them, and verified addresses. Accounts from before are exempt from verification. */
export class Migration00033Mails extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  'alter table "users" add column "email_verified_at" bigint null',
  'alter table "users" add column "must_verify_since" bigint null',
  `create table "account_tokens" (
    "user_id" uuid not null,
    "purpose" text not null,
    "token_hash" text not null,
    "created_at" bigint not null,
    "expires_at" bigint not null,
    constraint "account_tokens_user_id_foreign" foreign key ("user_id") references "users" ("id") on update no action on delete restrict,
    constraint "account_tokens_purpose_check" check (purpose in ('verify_email', 'password_reset')),
    primary key ("user_id", "purpose")
  )`,
  'alter table "account_tokens" add constraint "account_tokens_token_hash_unique" unique ("token_hash")',
  `create table "mails" (
    "id" uuid not null primary key,
    "user_id" uuid not null,
    "address" text not null,
    "kind" text not null,
    "facts" text not null,
    "token_encrypted" text null,
    "event_key" text null,
    "state" text not null,
    "attempts" integer not null,
    "next_try_at" bigint not null,
    "lease_token" text null,
    "lease_until" bigint not null,
    "last_error" text null,
    "created_at" bigint not null,
    "give_up_at" bigint not null,
    "finished_at" bigint null,
    constraint "mails_user_id_foreign" foreign key ("user_id") references "users" ("id") on update no action on delete restrict,
    constraint "mails_state_check" check (state in ('queued', 'sent', 'failed')),
    constraint "mails_finished_check" check ((state = 'queued') = (finished_at is null)),
    constraint "mails_token_check" check (state = 'queued' or token_encrypted is null)
  )`,
  'alter table "mails" add constraint "mails_event" unique ("event_key")',
  `create index "mails_due" on "mails" ("next_try_at", "id") where state = 'queued'`,
  'create index "mails_address" on "mails" ("address", "created_at")',
  'create index "mails_finished" on "mails" ("finished_at") where finished_at is not null',
  `create table "mail_opt_outs" (
    "user_id" uuid not null,
    "event" text not null,
    "created_at" bigint not null,
    constraint "mail_opt_outs_user_id_foreign" foreign key ("user_id") references "users" ("id") on update no action on delete restrict,
    primary key ("user_id", "event")
  )`,
]
