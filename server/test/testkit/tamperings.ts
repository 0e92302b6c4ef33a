import { sql } from 'kysely'
import { CHAIN_TAMPERINGS } from './chain-tamperings.ts'
import { JOURNAL_TAMPERINGS, SALE_TAMPERINGS } from './journal-tamperings.ts'
import { change, changed, one, oneOf, share, type Tampering } from './tampering.ts'

const CHARGED = "state = 'charged'"
const CLOSED = "state = 'closed'"

/** A change of the counts of a link, which the report must name. */
function miscounted(what: string, statement: Tampering['statement']): Tampering {
  return {
    invariant: 'visits-counted',
    what,
    statement,
    subject: sql`select ${one('clicks', "kind = 'visit' and tracked = 1")} as id, cast(link_id as text) as subject
      from clicks where cast(id as text) = ${one('clicks', "kind = 'visit' and tracked = 1")}`,
  }
}

const CLICKS: Tampering[] = [
  miscounted(
    'a visit that the counts miss',
    sql`insert into click_counts (link_id, clicks, unique_clicks)
      select link_id, -1, -1 from clicks where kind = 'visit' and tracked = 1
      group by link_id on conflict (link_id) do update set clicks = click_counts.clicks - 1`,
  ),
  miscounted(
    'a visit that never was',
    sql`insert into click_counts (link_id, clicks, unique_clicks)
      select link_id, 1, 0 from clicks where kind = 'visit' and tracked = 1
      group by link_id on conflict (link_id) do update set clicks = click_counts.clicks + 1`,
  ),
]

const BILLING: Tampering[] = [
  {
    invariant: 'rows-complete-billing-cycles',
    what: 'a deleted cycle',
    statement: sql`delete from billing_cycles where cast(id as text) = ${one('billing_cycles', CLOSED)}`,
    subject: sql`select 'billing_cycles' as subject`,
  },
  changed('cycles-tile-time', 'a gap', 'billing_cycles', 'period_start = period_start + 1', "state = 'open'"),
  changed('cycles-tile-time', 'an open cycle before others', 'billing_cycles', "state = 'open'", CHARGED),
  changed(
    'cycle-totals',
    'a commission total of one paisa more',
    'billing_cycles',
    'commission_total = commission_total + 1',
  ),
  changed(
    'amounts-in-range',
    'a total beyond the bound',
    'billing_cycles',
    'fee_total = 9007199254740993',
    CLOSED,
  ),
  changed('cycle-totals', 'a sale too many', 'billing_cycles', 'sales_count = sales_count + 1', CLOSED),
  share('cycle-shares', 'a share of one paisa more', 'commission = commission + 1', 'true'),
  changed(
    'cycles-in-journal',
    'another amount due',
    'billing_cycles',
    'amount_due = amount_due - 1',
    CHARGED,
  ),
  changed(
    'cycles-in-journal',
    'a charge that the journal does not know',
    'billing_cycles',
    "state = 'charged'",
    CLOSED,
  ),
  changed(
    'cycles-in-journal',
    'a credit used twice',
    'billing_cycles',
    'credit_total = credit_total + 1',
    CLOSED,
  ),
  changed('credits', 'a credit of one paisa more', 'credits', 'amount = amount + 1'),
  {
    invariant: 'credits',
    what: 'more credit used than was granted',
    statement: change('billing_cycles', 'credit_total = 900000', CLOSED),
    subject: sql`select cast(merchant_id as text) as subject from billing_cycles
      where cast(id as text) = ${one('billing_cycles', CLOSED)}`,
  },
  {
    invariant: 'merchant-balances',
    what: "a closed cycle that is gone from its merchant's account",
    statement: change(
      'billing_cycles',
      "merchant_id = (select id from users where role = 'creator' limit 1)",
      CLOSED,
    ),
    subject: sql`select cast(merchant_id as text) as subject from billing_cycles
      where cast(id as text) = ${one('billing_cycles', CLOSED)}`,
  },
  changed(
    'invoice-attempts',
    'an invoice of another amount',
    'billing_cycles',
    'amount_due = amount_due + 1',
    CLOSED,
  ),
  changed(
    'invoice-attempts',
    "another invoice's id",
    'billing_cycles',
    "processor_invoice_id = 'inv_other'",
    CHARGED,
  ),
  {
    invariant: 'invoice-attempts',
    what: 'a closed cycle without an invoice request',
    statement: sql`delete from processor_attempts
      where cast(subject_id as text) = ${one('billing_cycles', CLOSED)}`,
    subject: oneOf('billing_cycles', CLOSED),
  },
]

const PAID = "state = 'paid'"

const PAYOUTS: Tampering[] = [
  changed('payout-lines', 'an amount that its lines do not make', 'payouts', 'amount = amount + 1'),
  {
    invariant: 'payout-lines',
    what: 'a line that names another merchant',
    statement: sql`update payout_lines set merchant_id = (select creator_id from payouts limit 1)
      where cast(payout_id as text) = ${one('payouts', PAID)}`,
    subject: oneOf('payouts', PAID),
  },
  {
    invariant: 'shares-paid-once',
    what: 'a share that is in two payouts',
    statement: sql`update payouts set state = 'submitted' where state = 'failed'`,
    subject: sql`select cast(billing_cycle_id as text) as subject from payout_lines
      where payout_id = (select id from payouts where state = 'failed')`,
  },
  share('shares-paid-once', 'a paid share that is free again', 'carried = 0', 'carried > 0'),
  share(
    'shares-released',
    'a share released before its cycle is charged',
    'released_at = 1',
    'released_at is null',
  ),
  share(
    'shares-released',
    'another time of release',
    'released_at = released_at + 1',
    'released_at is not null',
  ),
  changed(
    'payouts-in-journal',
    'a payment that the journal does not know',
    'payouts',
    "state = 'paid'",
    "state = 'submitted'",
  ),
  {
    invariant: 'payouts-in-journal',
    what: 'a payout without its entry',
    statement: sql`update ledger_entries set kind = 'payout_failed'
      where kind = 'payout_created' and cast(subject_id as text) = ${one('payouts', PAID)}`,
    subject: oneOf('payouts', PAID),
  },
  {
    invariant: 'creator-balances',
    what: 'a payout that was lost',
    statement: sql`delete from payouts where cast(id as text) = ${one('payouts', PAID)}`,
    subject: sql`select cast(creator_id as text) as subject from payouts where cast(id as text) = ${one('payouts', PAID)}`,
  },
  changed('payout-attempts', "another payout's id", 'payouts', "processor_payout_id = 'po_other'", PAID),
  changed(
    'payout-attempts',
    'a payout that was submitted without being sent',
    'payouts',
    "state = 'submitted'",
    "state = 'pending'",
  ),
]

const EVENTS: Tampering[] = [
  {
    invariant: 'rows-complete-inbound-events',
    what: 'an applied event that was deleted',
    statement: sql`delete from inbound_events where cast(id as text) = ${one('inbound_events', "state = 'ignored'")}`,
    subject: sql`select 'inbound_events' as subject`,
  },
  {
    invariant: 'rows-complete-inbound-events',
    what: 'an applied event that is to be applied again',
    statement: change('inbound_events', "state = 'pending', finished_at = null", "state = 'done'"),
    subject: sql`select 'inbound_events' as subject`,
  },
  {
    invariant: 'events-once',
    what: 'a delivery that is kept twice',
    statement: sql`update inbound_events set conflict_hash = '' where delivery_id = 'twice'`,
    subject: sql`select 'delivery twice' as subject`,
  },
  changed(
    'events-explained',
    'an event ignored without a reason',
    'inbound_events',
    'reason = null',
    "state = 'ignored'",
  ),
  {
    invariant: 'events-explained',
    what: 'an event that is set aside without a flag',
    statement: sql`delete from flags where subject_type in ('inbound_event', 'store_events')`,
    subject: oneOf('inbound_events', "state = 'set_aside'"),
  },
  {
    invariant: 'events-applied',
    what: 'a sale whose event is lost',
    statement: sql`delete from inbound_events where cast(id as text) =
      (select cast(event_id as text) from sales where cast(id as text) = ${one('sales', 'true')})`,
    subject: oneOf('sales', 'true'),
  },
  {
    invariant: 'events-applied',
    what: 'an order event that is done and made nothing',
    statement: sql`delete from sales where cast(id as text) = ${one('sales', 'true')}`,
    subject: sql`select cast(event_id as text) as subject from sales where cast(id as text) = ${one('sales', 'true')}`,
  },
  changed(
    'events-once',
    'an event that took effect under a delivery id that was taken',
    'inbound_events',
    "state = 'done'",
    "conflict_hash <> ''",
  ),
  changed(
    'settled-by-events',
    'a payout that is paid though the processor said that it failed',
    'payouts',
    "state = 'paid'",
    "state = 'failed'",
  ),
  {
    invariant: 'settled-by-events',
    what: 'a cycle that no event charged',
    statement: sql`delete from inbound_events where result like '%' || ${one('billing_cycles', CHARGED)} || '%'`,
    subject: oneOf('billing_cycles', CHARGED),
  },
  {
    invariant: 'settled-by-events',
    what: 'an event that charged a cycle which is not charged',
    statement: change('billing_cycles', "state = 'closed'", CHARGED),
    subject: sql`select cast(min(cast(id as text)) as text) as subject from inbound_events
      where result like '%' || ${one('billing_cycles', CHARGED)} || '%'`,
  },
]

const OPERATIONS: Tampering[] = [
  {
    invariant: 'credits-recorded',
    what: 'a credit without a grant',
    statement: sql`delete from audit_entries where action = 'billing.credit'`,
    subject: oneOf('credits', 'true'),
  },
  changed(
    'suspensions-recorded',
    'a user without a record of the suspension',
    'users',
    'suspended_at = 1',
    'suspended_at is null',
  ),
  {
    invariant: 'suspensions-recorded',
    what: 'a suspension that is gone from the record',
    statement: sql`delete from audit_entries where action = 'user.suspend'`,
    subject: oneOf('users', 'suspended_at is not null'),
  },
  {
    invariant: 'second-attempts-recorded',
    what: 'a repeated invoice request without a record',
    statement: sql`delete from audit_entries where action = 'billing.reissue'`,
    subject: sql`select min(subject_id) as subject from audit_entries where action = 'billing.reissue'`,
  },
  {
    invariant: 'second-attempts-recorded',
    what: 'a repeated payout under another attempt than the record names',
    statement: sql`update audit_entries set after = '{"attempt_id":"another"}' where action = 'payout.retry'`,
    subject: sql`select min(subject_id) as subject from audit_entries where action = 'payout.retry'`,
  },
]

/** The first body that fits, whose event the report must name. */
function body(what: string, assignment: string, condition: string): Tampering {
  const event = sql`(select min(cast(event_id as text)) from inbound_bodies where ${sql.raw(condition)})`
  return {
    invariant: 'bodies-hash',
    what,
    statement: sql`update inbound_bodies set ${sql.raw(assignment)} where cast(event_id as text) = ${event}`,
    subject: sql`select ${event} as subject`,
  }
}

const BODIES: Tampering[] = [
  body('a body with one more space', "body = body || ' '", "encoding = 'utf8'"),
  body('a body of other bytes', "body = 'AAAA'", "encoding = 'base64'"),
  {
    invariant: 'sales-as-reported',
    what: 'a sale of another order',
    statement: sql`update sales set order_id = '1' where cast(event_id as text) = ${one('inbound_events', "source = 'store' and state = 'done'")}`,
    subject: oneOf('inbound_events', "source = 'store' and state = 'done'"),
  },
  changed(
    'charges-as-confirmed',
    'another payment than the event names',
    'billing_cycles',
    "processor_payment_reference = 'pay_other'",
    CHARGED,
  ),
]

export const TAMPERINGS: readonly Tampering[] = [
  ...JOURNAL_TAMPERINGS,
  ...CHAIN_TAMPERINGS,
  ...SALE_TAMPERINGS,
  ...CLICKS,
  ...BILLING,
  ...PAYOUTS,
  ...EVENTS,
  ...BODIES,
  ...OPERATIONS,
]
