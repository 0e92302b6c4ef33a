/*
 * What the migrations `00032-second-factor` run on both databases. Never edited once they have landed.
 */

const TWELVE_HOURS_MS = 12 * 60 * 60 * 1000

/** `id` is the type of an id's column. */
export function secondFactorStatements(id: 'text' | 'uuid'): string[] {
  return [
    ...['last_used_at bigint', 'address_prefix text', 'agent text', 'fresh_until bigint'].map(
      (column) => `alter table "sessions" add column ${column} null`,
    ),
    'alter table "sessions" add column "setup_only" integer not null default 0',
    // Admins log in again within 12 hours of their last log-in, and set up a second factor then.
    `update "sessions" set "expires_at" = "created_at" + ${TWELVE_HOURS_MS}
      where "expires_at" > "created_at" + ${TWELVE_HOURS_MS}
        and "user_id" in (select "id" from "users" where "role" = 'admin')`,
    `create table "second_factors" (
      "user_id" ${id} not null primary key,
      "secret_encrypted" text not null,
      "created_at" bigint not null,
      "confirmed_at" bigint null,
      "last_step" bigint not null,
      constraint "second_factors_user_id_foreign" foreign key ("user_id") references "users" ("id") on update no action on delete restrict
    )`,
    `create table "recovery_codes" (
      "user_id" ${id} not null,
      "code_hash" text not null,
      primary key ("user_id", "code_hash"),
      constraint "recovery_codes_user_id_foreign" foreign key ("user_id") references "users" ("id") on update no action on delete restrict
    )`,
  ]
}
