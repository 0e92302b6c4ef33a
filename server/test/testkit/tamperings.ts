import { sql } from 'kysely'
import { JOURNAL_TAMPERINGS } from './journal-tamperings.ts'
import { SALE_TAMPERINGS } from './sale-tamperings.ts'
import { change, changes, one, oneOf, type Tampering } from './tampering.ts'

const CHARGED = "state = 'charged'"
const CLOSED = "state = 'closed'"

const BILLING: Tampering[] = [
  ...changes('billing_cycles', [
    ['cycles-tile-time', 'a gap', 'period_start = period_start + 1', "state = 'open'"],
    ['cycles-tile-time', 'an open cycle before others', "state = 'open'", CHARGED],
    ['cycle-totals', 'a commission total of one paisa more', 'commission_total = commission_total + 1'],
    ['amounts-in-range', 'a total beyond the bound', 'fee_total = 9007199254740993', CLOSED],
    ['cycle-totals', 'a sale too many', 'sales_count = sales_count + 1', CLOSED],
    ['cycles-in-journal', 'another amount due', 'amount_due = amount_due - 1', CHARGED],
    ['cycles-in-journal', 'a charge that the journal does not know', "state = 'charged'", CLOSED],
    ['cycles-in-journal', 'a credit used twice', 'credit_total = credit_total + 1', CLOSED],
    ['invoice-attempts', 'an invoice of another amount', 'amount_due = amount_due + 1', CLOSED],
    ['invoice-attempts', "another invoice's id", "processor_invoice_id = 'inv_other'", CHARGED],
  ]),
  ...changes(
    'billing_cycle_shares',
    [['cycle-shares', 'a share of one paisa more', 'commission = commission + 1']],
    'billing_cycle_id',
  ),
  ...changes('credits', [['credits', 'a credit of one paisa more', 'amount = amount + 1']]),
  {
    invariant: 'rows-complete-billing-cycles',
    what: 'a deleted cycle',
    statement: sql`delete from billing_cycles where cast(id as text) = ${one('billing_cycles', CLOSED)}`,
    subject: sql`select 'billing_cycles' as subject`,
  },
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
  ...changes('payouts', [
    ['payout-lines', 'an amount that its lines do not make', 'amount = amount + 1'],
    [
      'payouts-in-journal',
      'a payment that the journal does not know',
      "state = 'paid'",
      "state = 'submitted'",
    ],
    ['payout-attempts', "another payout's id", "processor_payout_id = 'po_other'", PAID],
    [
      'payout-attempts',
      'a payout that was submitted without being sent',
      "state = 'submitted'",
      "state = 'pending'",
    ],
  ]),
  ...changes(
    'billing_cycle_shares',
    [
      ['shares-paid-once', 'a paid share that is free again', 'carried = 0', 'carried > 0'],
      [
        'shares-released',
        'a share released before its cycle is charged',
        'released_at = 1',
        'released_at is null',
      ],
      [
        'shares-released',
        'another time of release',
        'released_at = released_at + 1',
        'released_at is not null',
      ],
    ],
    'billing_cycle_id',
  ),
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
]

const EVENTS: Tampering[] = [
  ...changes('inbound_events', [
    ['events-explained', 'an event ignored without a reason', 'reason = null', "state = 'ignored'"],
    [
      'events-once',
      'an event that took effect under a delivery id that was taken',
      "state = 'done'",
      "conflict_hash <> ''",
    ],
  ]),
  ...changes('payouts', [
    [
      'settled-by-events',
      'a payout that is paid though the processor said that it failed',
      "state = 'paid'",
      "state = 'failed'",
    ],
  ]),
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
  ...changes('users', [
    [
      'suspensions-recorded',
      'a user without a record of the suspension',
      'suspended_at = 1',
      'suspended_at is null',
    ],
  ]),
  {
    invariant: 'credits-recorded',
    what: 'a credit without a grant',
    statement: sql`delete from audit_entries where action = 'billing.credit'`,
    subject: oneOf('credits', 'true'),
  },
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

const BODIES: Tampering[] = [
  ...changes(
    'inbound_bodies',
    [
      ['bodies-hash', 'a body with one more space', "body = body || ' '", "encoding = 'utf8'"],
      ['bodies-hash', 'a body of other bytes', "body = 'AAAA'", "encoding = 'base64'"],
    ],
    'event_id',
  ),
  ...changes('billing_cycles', [
    [
      'charges-as-confirmed',
      'another payment than the event names',
      "processor_payment_reference = 'pay_other'",
      CHARGED,
    ],
  ]),
  {
    invariant: 'sales-as-reported',
    what: 'a sale of another order',
    statement: sql`update sales set order_id = '1' where cast(event_id as text) = ${one('inbound_events', "source = 'store' and state = 'done'")}`,
    subject: oneOf('inbound_events', "source = 'store' and state = 'done'"),
  },
]

export const TAMPERINGS: readonly Tampering[] = [
  ...JOURNAL_TAMPERINGS,
  ...SALE_TAMPERINGS,
  ...BILLING,
  ...PAYOUTS,
  ...EVENTS,
  ...BODIES,
  ...OPERATIONS,
]
