import type { Ddl } from '../ddl.ts'

/** New rows name a key that no seal has retired: 8 characters of its id, a dot and 64 more. */
function keyed({ onSqlite, onPostgres }: Ddl, table: string, column: string): string[] {
  const unkeyed = (hash: string) => `length(${hash}) <> 73 or substr(${hash}, 9, 1) <> '.'
    or exists (select 1 from ledger_seals where retires = substr(${hash}, 1, 8))`
  const message = `rows of ${table} are made with a key that is in use`
  return [
    onSqlite(`create trigger "${table}_keyed" before insert on "${table}"
      when ${unkeyed(`new.${column}`)} begin select raise(abort, '${message}'); end`),
    onPostgres(`create function "${table}_keyed"() returns trigger language plpgsql as $$
      begin
        if exists (select from added where ${unkeyed(`added.${column}`)}) then raise exception '${message}'; end if;
        return null;
      end $$`),
    // Once a statement: entries come by the hundred.
    onPostgres(`create trigger "${table}_keyed" after insert on "${table}"
      referencing new table as added for each statement execute function "${table}_keyed"()`),
  ]
}

const CYCLE_OVERLAPS = `exists (
    select 1 from billing_cycles as other
    where other.merchant_id = new.merchant_id and other.id <> new.id
      and other.period_start < new.period_end and other.period_end > new.period_start)`

/**
 * The one update of a sale: it was rejected as `not_paid` and is decided again, later, from another event, with the former decision
 * kept in `sale_decisions`.
 */
const SECOND_DECISION = `
  old.acceptance_status = 'rejected' and old.rejection_reason = 'not_paid' and old.decided_at is null
  and new.decided_at is not null and new.decided_at >= old.created_at
  and coalesce(new.rejection_reason, '') <> 'not_paid' and new.event_id <> old.event_id
  and new.id = old.id and new.store_id = old.store_id and new.merchant_id = old.merchant_id
  and new.order_id = old.order_id and new.created_at = old.created_at
  and exists (
    select 1 from sale_decisions as former
    where former.sale_id = old.id and former.event_id = old.event_id
      and former.decided_at = old.created_at and former.receipt = old.receipt)`

/** Billing cycles, sales, payouts, processor attempts and the journal. */
export function money(ddl: Ddl): string[] {
  const { id, unique, oneOf, onlyAdded, neverDeleted, refuse, references, onSqlite, onPostgres } = ddl
  return [
    `create table "billing_cycles" (
      "id" ${id} not null primary key,
      "merchant_id" ${id} not null constraint "billing_cycles_merchant_id_foreign" references "users" ("id") on delete restrict,
      "state" text not null,
      "period_start" bigint not null,
      "period_end" bigint not null,
      "sales_count" integer not null,
      "commission_total" bigint not null,
      "fee_total" bigint not null,
      "credit_total" bigint not null,
      "amount_due" bigint not null,
      "processor_invoice_id" text,
      "processor_payment_reference" text,
      "payment_url" text,
      "created_at" bigint not null,
      "closed_at" bigint,
      "charged_at" bigint,
      "row_digest" text not null,
      constraint "billing_cycles_state_check" check (state in ('open', 'closed', 'charged')),
      constraint "billing_cycles_period_check" check (period_start < period_end),
      constraint "billing_cycles_charged_check" check ((state = 'charged') = (processor_payment_reference is not null))
    )`,
    'create index "billing_cycles_merchant" on "billing_cycles" ("merchant_id", "id")',
    `create index "billing_cycles_open_end" on "billing_cycles" ("period_end") where state = 'open'`,
    `create index "billing_cycles_closed" on "billing_cycles" ("closed_at") where state = 'closed'`,
    `create unique index "billing_cycles_one_open" on "billing_cycles" ("merchant_id") where state = 'open'`,
    unique('billing_cycles', 'billing_cycles_start', 'merchant_id, period_start'),
    unique('billing_cycles', 'billing_cycles_invoice', 'processor_invoice_id'),
    ...neverDeleted('billing_cycles'),
    refuse(
      'update',
      'billing_cycles',
      'billing_cycles_forward_only',
      `
    (old.state = 'charged' and new.state <> 'charged')
    or (old.state = 'closed' and new.state = 'open')
    or (old.state = 'open' and new.state = 'charged')
    or new.merchant_id <> old.merchant_id
    or new.period_start <> old.period_start
    or (old.state = 'charged' and new.processor_payment_reference <> old.processor_payment_reference)
    or (old.state <> 'open' and (
      new.commission_total <> old.commission_total or new.fee_total <> old.fee_total
      or new.credit_total <> old.credit_total or new.amount_due <> old.amount_due
      or new.sales_count <> old.sales_count or new.period_end <> old.period_end))`,
    ),
    onPostgres(refuse('update', 'billing_cycles', 'billing_cycles_same_id', 'new.id <> old.id')),
    // Asked after the change: an insert that meets another transaction's row must be able to do nothing.
    ...['insert', 'update of period_start, period_end'].map((change) =>
      onSqlite(`create trigger "billing_cycles_no_overlap_${change.slice(0, 6)}" after ${change} on "billing_cycles"
    when ${CYCLE_OVERLAPS} begin select raise(abort, 'cycles of a merchant never overlap'); end`),
    ),
    onPostgres(`create function refuse_overlap() returns trigger language plpgsql as $$
    begin if ${CYCLE_OVERLAPS} then raise exception 'cycles of a merchant never overlap'; end if; return null; end $$`),
    onPostgres(`create trigger "billing_cycles_no_overlap" after insert or update of period_start, period_end
    on "billing_cycles" for each row execute function refuse_overlap()`),

    `create table "billing_cycle_shares" (
      "billing_cycle_id" ${id} not null constraint "billing_cycle_shares_billing_cycle_id_foreign" references "billing_cycles" ("id") on delete restrict,
      "creator_id" ${id} not null constraint "billing_cycle_shares_creator_id_foreign" references "users" ("id") on delete restrict,
      "sales_count" integer not null,
      "commission" bigint not null,
      "released_at" bigint,
      "carried" bigint not null default '0',
      primary key ("billing_cycle_id", "creator_id"),
      constraint "billing_cycle_shares_carried_check" check (carried >= 0 and carried <= commission and (carried = 0 or released_at is not null))
    )`,
    'create index "billing_cycle_shares_payable" on "billing_cycle_shares" ("creator_id") where released_at is not null and carried < commission',
    ...neverDeleted('billing_cycle_shares'),
    refuse(
      'update',
      'billing_cycle_shares',
      'billing_cycle_shares_forward_only',
      `
    new.commission < old.commission
    or new.sales_count < old.sales_count
    or (old.released_at is not null and (
      new.released_at is null or new.released_at <> old.released_at
      or new.commission <> old.commission or new.sales_count <> old.sales_count))`,
    ),

    `create table "credits" (
      "id" ${id} not null primary key,
      "merchant_id" ${id} not null constraint "credits_merchant_id_foreign" references "users" ("id") on delete restrict,
      "amount" bigint not null,
      "reference" text not null,
      "reason" text not null,
      "created_at" bigint not null,
      "row_digest" text not null,
      constraint "credits_amount_check" check (amount > 0)
    )`,
    unique('credits', 'credits_reference_unique', 'reference'),
    'create index "credits_merchant" on "credits" ("merchant_id")',
    ...onlyAdded('credits', ['id', 'merchant_id', 'amount', 'reference', 'reason', 'created_at']),

    `create table "sales" (
      "id" ${id} not null primary key,
      "store_id" ${id} not null ${onSqlite(`constraint "sales_store_id_foreign" references "stores" ("id") on delete restrict`)},
      "merchant_id" ${id} not null ${onSqlite(`constraint "sales_merchant_id_foreign" references "users" ("id") on delete restrict`)},
      "order_id" text not null,
      "order_name" text,
      "acceptance_status" text not null,
      "rejection_reason" text,
      "offer_id" ${id},
      "creator_id" ${id},
      "link_id" ${id},
      "click_id" ${id},
      "coupon_code" text,
      "net_amount" bigint not null,
      "commission_rate" integer,
      "commission" bigint not null,
      "platform_fee" bigint not null,
      "billing_cycle_id" ${id} ${onSqlite(`constraint "sales_billing_cycle_id_foreign" references "billing_cycles" ("id") on delete restrict`)},
      "ordered_at" bigint not null,
      "created_at" bigint not null,
      "decided_at" bigint,
      "event_id" ${id} not null,
      "receipt" text not null,
      "buyer_name_matches" integer not null default 0,
      constraint "sales_acceptance_status_check" check (acceptance_status in ('accepted', 'rejected')),
      constraint "sales_accepted_check" check ((acceptance_status = 'accepted') = (billing_cycle_id is not null) and (acceptance_status = 'accepted') = (rejection_reason is null)),
      constraint "sales_amounts_check" check (commission between 0 and net_amount and platform_fee >= 0)
    )`,
    'create index "sales_merchant" on "sales" ("merchant_id", "id")',
    'create index "sales_creator" on "sales" ("creator_id", "id")',
    `create index "sales_cycle" on "sales" ("billing_cycle_id"${onSqlite(`, "creator_id", "commission", "platform_fee"`)})`,
    'create index "sales_link" on "sales" ("link_id", "click_id")',
    'create index "sales_coupon" on "sales" ("link_id", "id") where coupon_code is not null',
    'create index "sales_decided_again" on "sales" ("decided_at") where decided_at is not null',
    unique('sales', 'sales_order', 'store_id, order_id'),
    ...neverDeleted('sales'),
    onSqlite(refuse('update', 'sales', 'sales_refuse_update', `not (${SECOND_DECISION})`)),
    onPostgres(`create function refuse_sale_update() returns trigger language plpgsql as $$
    begin
      if not (${SECOND_DECISION}) then raise exception 'this change of sales is refused'; end if;
      return new;
    end $$`),
    onPostgres(`create trigger "sales_one_update" before update on "sales"
    for each row execute function refuse_sale_update()`),
    ...references('sales', [
      { to: 'stores', by: { store_id: 'id', merchant_id: 'merchant_id' } },
      { to: 'billing_cycles', by: { billing_cycle_id: 'id', merchant_id: 'merchant_id' } },
      {
        to: 'affiliate_links',
        by: { link_id: 'id', merchant_id: 'merchant_id', offer_id: 'offer_id', creator_id: 'creator_id' },
      },
    ]),
    onPostgres(`create trigger "sales_refer_updated" after update on "sales"
    referencing new table as added for each statement execute function refuse_lost_sales()`),

    `create table "sale_decisions" (
      "sale_id" ${id} not null primary key constraint "sale_decisions_sale_id_foreign" references "sales" ("id") on delete restrict,
      "event_id" ${id} not null,
      "decided_at" bigint not null,
      "receipt" text not null
    )`,
    unique('sale_decisions', 'sale_decisions_event', 'event_id'),
    ...onlyAdded('sale_decisions'),

    `create table "payouts" (
      "id" ${id} not null primary key,
      "creator_id" ${id} not null constraint "payouts_creator_id_foreign" references "users" ("id") on delete restrict,
      "state" text not null,
      "amount" bigint not null,
      "processor_payout_id" text,
      "failure_reason" text,
      "created_at" bigint not null,
      "submitted_at" bigint,
      "settled_at" bigint,
      constraint "payouts_state_check" check (state in ('pending', 'submitted', 'paid', 'failed')),
      constraint "payouts_amount_check" check (amount > 0)
    )`,
    'create index "payouts_creator" on "payouts" ("creator_id", "id")',
    unique('payouts', 'payouts_processor', 'processor_payout_id'),
    ...neverDeleted('payouts'),
    refuse(
      'update',
      'payouts',
      'payouts_forward_only',
      `
    (old.state in ('paid', 'failed') and new.state <> old.state)
    or (old.state = 'submitted' and new.state = 'pending')
    or new.amount <> old.amount
    or new.creator_id <> old.creator_id`,
    ),

    `create table "payout_lines" (
      "payout_id" ${id} not null constraint "payout_lines_payout_id_foreign" references "payouts" ("id") on delete restrict,
      "billing_cycle_id" ${id} not null constraint "payout_lines_billing_cycle_id_foreign" references "billing_cycles" ("id") on delete restrict,
      "merchant_id" ${id} not null constraint "payout_lines_merchant_id_foreign" references "users" ("id") on delete restrict,
      "amount" bigint not null,
      primary key ("payout_id", "billing_cycle_id"),
      constraint "payout_lines_amount_check" check (amount > 0)
    )`,
    'create index "payout_lines_merchant" on "payout_lines" ("merchant_id", "payout_id")',
    ...onlyAdded('payout_lines'),

    `create table "processor_attempts" (
      "id" ${id} not null primary key,
      "kind" text not null,
      "subject_id" ${id} not null,
      "amount" bigint not null,
      "request" text not null,
      "state" text not null,
      "tries" integer not null,
      "next_try_at" bigint not null,
      "unknown_at" bigint,
      "lease_token" text,
      "lease_until" bigint not null,
      "processor_id" text,
      "detail" text,
      "created_at" bigint not null,
      "settled_at" bigint,
      "failed_at" bigint,
      "row_digest" text not null,
      constraint "processor_attempts_kind_check" check (kind in ('invoice', 'payout')),
      constraint "processor_attempts_state_check" check (state in ('waiting', 'created', 'refused'))
    )`,
    `create index "processor_attempts_waiting" on "processor_attempts" ("next_try_at") where state = 'waiting'`,
    'create index "processor_attempts_subject" on "processor_attempts" ("subject_id", "id")',
    'create index "processor_attempts_processor" on "processor_attempts" ("processor_id") where processor_id is not null',
    `create unique index "processor_attempts_one" on "processor_attempts" ("subject_id") where state in ('waiting', 'created') and failed_at is null`,
    ...neverDeleted('processor_attempts'),
    refuse(
      'update',
      'processor_attempts',
      'processor_attempts_forward_only',
      `
    (old.state <> 'waiting' and new.state <> old.state)
    or new.amount <> old.amount
    or new.kind <> old.kind
    or new.subject_id <> old.subject_id
    or new.request <> old.request`,
    ),

    `create table "ledger_entries" (
      "id" ${id} not null primary key,
      "kind" text not null,
      "subject_id" ${id} not null,
      "created_at" bigint not null,
      "ledger_id" ${id} not null,
      "sequence" integer not null,
      "hash" text not null,
      constraint "ledger_entries_kind_check" check (${oneOf('kind', 'sale_accepted', 'credit_granted', 'cycle_closed', 'cycle_charged', 'payout_created', 'payout_confirmed', 'payout_failed')})
    )`,
    unique('ledger_entries', 'ledger_entries_subject', 'subject_id, kind'),
    unique('ledger_entries', 'ledger_entries_place', 'ledger_id, sequence'),
    ...onlyAdded('ledger_entries'),

    `create table "ledger_postings" (
      "entry_id" ${id} not null ${onSqlite(`constraint "ledger_postings_entry_id_foreign" references "ledger_entries" ("id") on delete restrict`)},
      "line" integer not null,
      "account" text not null,
      "owner_id" ${id} not null,
      "amount" bigint not null,
      primary key ("entry_id", "line"),
      constraint "ledger_postings_account_check" check (${oneOf('account', 'merchant_unbilled', 'merchant_receivable', 'creator_pending', 'creator_released', 'payouts_in_transit', 'platform_fees', 'platform_credits', 'processor_clearing')}),
      constraint "ledger_postings_amount_check" check (amount <> 0)
    )`,
    'create index "ledger_postings_account" on "ledger_postings" ("owner_id", "account", "amount")',
    ...onlyAdded('ledger_postings'),
    ...references('ledger_postings', [{ to: 'ledger_entries', by: { entry_id: 'id' } }]),

    `create table "ledger_heads" (
      "ledger_id" ${id} not null primary key constraint "ledger_heads_ledger_id_foreign" references "users" ("id") on delete restrict,
      "sequence" integer not null,
      "hash" text not null,
      "mac" text
    )`,
    ...neverDeleted('ledger_heads'),
    refuse(
      'update',
      'ledger_heads',
      'ledger_heads_forward_only',
      'new.ledger_id <> old.ledger_id or new.sequence <= old.sequence or new.mac is null',
    ),

    `create table "ledger_seals" (
      "position" integer not null primary key,
      "sealed_at" bigint not null,
      "digest" text not null,
      "retires" text,
      "row_digest" text not null
    )`,
    unique('ledger_seals', 'ledger_seals_digest_unique', 'digest'),
    unique('ledger_seals', 'ledger_seals_retires_unique', 'retires'),
    ...onlyAdded('ledger_seals', ['position', 'sealed_at', 'digest', 'retires']),
    ...keyed(ddl, 'ledger_entries', 'hash'),
    ...keyed(ddl, 'ledger_seals', 'digest'),

    `create table "ledger_seal_heads" (
      "position" integer not null constraint "ledger_seal_heads_position_foreign" references "ledger_seals" ("position") on delete restrict,
      "ledger_id" ${id} not null,
      "sequence" integer not null,
      "hash" text not null,
      primary key ("position", "ledger_id")
    )`,
    'create index "ledger_seal_heads_head" on "ledger_seal_heads" ("ledger_id", "sequence")',
    ...onlyAdded('ledger_seal_heads'),
  ]
}
