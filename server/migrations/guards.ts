/*
 * What the migration `00002-guards` makes triggers of. Never edited once that has landed: a later migration brings its
 * own list.
 */

/** Tables whose rows are only ever added. */
export const APPEND_ONLY = [
  'ledger_entries',
  'ledger_postings',
  'ledger_seals',
  'ledger_seal_heads',
  'sales',
  'credits',
  'payout_lines',
  'affiliate_links',
  'audit_entries',
  'payout_destinations',
]

/** Tables whose rows move forward, but never go. */
export const NEVER_DELETED = [
  'billing_cycles',
  'billing_cycle_shares',
  'ledger_heads',
  'payouts',
  'processor_attempts',
  'inbound_events',
]

/**
 * Whether the cycle `new` overlaps another one of its merchant. Asked after the change: an insert that meets a row which
 * another transaction made must be able to do nothing.
 */
export const CYCLE_OVERLAPS = `exists (
  select 1 from billing_cycles as other
  where other.merchant_id = new.merchant_id and other.id <> new.id
    and other.period_start < new.period_end and other.period_end > new.period_start)`

/** Conditions over `old` and `new` under which an update is refused: states only move forward, frozen figures stay. */
export const FORBIDDEN_UPDATES = {
  billing_cycles: `
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
  billing_cycle_shares: `
    new.commission < old.commission
    or new.sales_count < old.sales_count
    or (old.released_at is not null and (
      new.released_at is null or new.released_at <> old.released_at
      or new.commission <> old.commission or new.sales_count <> old.sales_count))`,
  ledger_heads: 'new.ledger_id <> old.ledger_id or new.sequence <= old.sequence',
  payouts: `
    (old.state in ('paid', 'failed') and new.state <> old.state)
    or (old.state = 'submitted' and new.state = 'pending')
    or new.amount <> old.amount
    or new.creator_id <> old.creator_id`,
  processor_attempts: `
    (old.state <> 'waiting' and new.state <> old.state)
    or new.amount <> old.amount
    or new.kind <> old.kind
    or new.subject_id <> old.subject_id
    or new.request <> old.request`,
  inbound_events: `
    (old.state in ('done', 'ignored') and new.state <> old.state)
    or new.scope <> old.scope
    or new.delivery_id <> old.delivery_id
    or new.body_hash <> old.body_hash`,
}

/** Migration 22: columns of a sale that its second decision leaves as they are. */
const SALE_KEEPS = ['id', 'store_id', 'merchant_id', 'order_id', 'created_at']

/**
 * The one update of a sale: it was rejected as `not_paid` and is decided again, later, from another event, with the former decision
 * kept in `sale_decisions`.
 */
export const ALLOWED_SALE_UPDATE = `
  old.acceptance_status = 'rejected' and old.rejection_reason = 'not_paid' and old.decided_at is null
  and new.decided_at is not null and new.decided_at >= old.created_at
  and coalesce(new.rejection_reason, '') <> 'not_paid' and new.event_id <> old.event_id
  and ${SALE_KEEPS.map((column) => `new.${column} = old.${column}`).join(' and ')}
  and exists (
    select 1 from sale_decisions as former
    where former.sale_id = old.id and former.event_id = old.event_id
      and former.decided_at = old.created_at and former.receipt = old.receipt)`

/** Migration 19: columns of a payout destination that stay as they are when its IBAN is re-encrypted. */
const DESTINATION_KEEPS = ['id', 'user_id', 'iban_last4', 'account_title', 'effective_at', 'created_at']

/** The one update of a payout destination: its IBAN is re-encrypted, with another key or to bind it to its row. */
export const ALLOWED_DESTINATION_UPDATE = `
  new.iban_encrypted <> old.iban_encrypted
  and ${DESTINATION_KEEPS.map((column) => `new.${column} = old.${column}`).join(' and ')}`

/*
 * What the migration `00020-keyed-journal` makes triggers of; it replaces `FORBIDDEN_UPDATES.ledger_heads`. Never edited either.
 */

/** A head moves on with a MAC, or, once, gets the MAC of where it stands. */
export const FORBIDDEN_HEAD_UPDATE = `new.ledger_id <> old.ledger_id or new.sequence < old.sequence or new.mac is null
  or (new.sequence = old.sequence and (new.hash <> old.hash or old.mac is not null))`

/** A hash of the 8 characters of a key's id, a dot and 64 more, whose key no seal has retired. */
export const UNKEYED_SQLITE = (hash: string) => `length(${hash}) <> 73 or substr(${hash}, 9, 1) <> '.'
  or exists (select 1 from ledger_seals where retires = substr(${hash}, 1, 8))`

/** The same, inside a quoted function body. */
export const UNKEYED_POSTGRESQL = (hash: string) => `length(${hash}) <> 73 or substr(${hash}, 9, 1) <> ''.''
  or exists (select from ledger_seals where retires = substr(${hash}, 1, 8))`

/*
 * What the migration `00025-coupons` makes triggers of. Never edited either.
 */

/** The one update of a link's coupon code: it ends. */
export const ALLOWED_COUPON_UPDATE = `old.ends_at is null and new.ends_at is not null
  and ${['id', 'link_id', 'merchant_id', 'code', 'starts_at'].map((column) => `new.${column} = old.${column}`).join(' and ')}`

/** The number of an offer's change of status `new`. */
export const STATUS_SEQUENCE =
  '(select coalesce(max(sequence), 0) + 1 from offer_status_changes where offer_id = new.id)'

/** Offers that were there before get one row: the status that they had since they were created, for all that is known. */
export const STATUSES_OF_EARLIER_OFFERS = `insert into offer_status_changes (offer_id, sequence, status, changed_at)
  select id, 1, status, created_at from offers`

/*
 * What the migration `00027-billing-accounts` makes triggers of. Never edited either.
 */

/** The one update of a billing account: it is re-encrypted with another key. */
export const ALLOWED_BILLING_ACCOUNT_UPDATE = `new.account_encrypted <> old.account_encrypted
  and ${['id', 'user_id', 'kind', 'account_last4', 'created_at'].map((column) => `new.${column} = old.${column}`).join(' and ')}`

/*
 * What the migration `00031-outbox` makes triggers of. Never edited either.
 */

/** The one update of an outbox event: its channels have taken it. */
export const ALLOWED_OUTBOX_UPDATE = `old.distributed_at is null and new.distributed_at is not null
  and ${['id', 'type', 'account_id', 'subject_id', 'sequence', 'data', 'created_at'].map((column) => `new.${column} = old.${column}`).join(' and ')}`
