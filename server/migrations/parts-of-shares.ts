/*
 * What the migrations `00028-parts-of-shares` run on both databases. Never edited once they have landed.
 */

export const PARTS_OF_SHARES = [
  'drop index "billing_cycle_shares_payable"',
  'drop index "billing_cycle_shares_payout"',
  `alter table "billing_cycle_shares" add column "carried" bigint not null default '0'`,
  'update "billing_cycle_shares" set "carried" = "commission" where "payout_id" is not null',
  'alter table "billing_cycle_shares" drop column "payout_id"',
  `alter table "billing_cycle_shares" add constraint "billing_cycle_shares_carried_check"
    check (carried >= 0 and carried <= commission and (carried = 0 or released_at is not null))`,
  `create index "billing_cycle_shares_payable" on "billing_cycle_shares" ("creator_id")
    where released_at is not null and carried < commission`,
  'alter table "processor_attempts" add column "failed_at" bigint null',
  'drop index "processor_attempts_one"',
  `create unique index "processor_attempts_one" on "processor_attempts" ("subject_id")
    where state in ('waiting', 'created') and failed_at is null`,
  'create index "processor_attempts_subject" on "processor_attempts" ("subject_id", "id")',
  'create index "processor_attempts_processor" on "processor_attempts" ("processor_id") where processor_id is not null',
]
