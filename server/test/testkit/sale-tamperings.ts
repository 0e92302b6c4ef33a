import { type RawBuilder, sql } from 'kysely'
import { change, changes, NEW_ID, NO_USER, one, oneOf, posting, type Tampering } from './tampering.ts'

const ACCEPTED = "acceptance_status = 'accepted'"

/** A change of the click of the first accepted sale, which the report must name. */
function click(what: string, statement: (id: RawBuilder<unknown>) => RawBuilder<unknown>): Tampering {
  const sale = one('sales', ACCEPTED)
  const id = sql`(select cast(click_id as text) from sales where cast(id as text) = ${sale})`
  return {
    invariant: 'receipts-replay',
    what,
    statement: statement(id),
    subject: sql`select ${sale} as subject`,
  }
}

function clickChange(assignment: string, id: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`update clicks set ${sql.raw(assignment)} where cast(id as text) = ${id}`
}

const ACCEPTED_ONCE = `${ACCEPTED} and decided_at is null`

const BECAME_SALE = "state = 'became_sale'"

const COUPON_SALE = 'coupon_code is not null'

const SALES: Tampering[] = [
  ...changes('offers', [
    ['offer-statuses', 'an offer paused in passing', "status = 'paused'", "status = 'live'"],
  ]),
  ...changes('link_coupons', [
    ['coupons-of-links', 'a code of another merchant', `merchant_id = '${NO_USER}'`],
  ]),
  ...changes('sales', [
    ['coupon-sales-in-force', 'a code that the link never had', "coupon_code = 'OTHER'", COUPON_SALE],
    ['sale-amounts', 'a commission of one paisa more', 'commission = commission + 1', ACCEPTED],
    ['sale-amounts', 'another rate than the locked one', 'commission_rate = 1251', ACCEPTED],
    ['sale-amounts', 'a rejected sale that pays', 'commission = 1', "acceptance_status = 'rejected'"],
    ['sale-amounts', 'a sale of another creator than the link is', 'creator_id = merchant_id', ACCEPTED],
    ['sales-in-journal', 'another fee than the journal has', 'platform_fee = platform_fee + 1', ACCEPTED],
    [
      'sales-in-journal',
      'a rejected sale that is accepted afterwards',
      "acceptance_status = 'accepted'",
      "acceptance_status = 'rejected'",
    ],
    [
      'sales-in-cycles',
      'a sale after the end of its cycle',
      'created_at = created_at + 9000000000000',
      ACCEPTED,
    ],
    [
      'receipts-replay',
      'a receipt with another price',
      `receipt = replace(receipt, '"unit_price":', '"unit_price":1')`,
      ACCEPTED,
    ],
    [
      'receipts-replay',
      'a check of the decision that saw something else',
      `receipt = replace(receipt, '"tolerance_ms":', '"tolerance_ms":1')`,
      ACCEPTED,
    ],
    ['receipts-replay', 'a receipt that is no JSON', "receipt = 'lost'"],
    ['receipts-replay', 'a net amount that the receipt does not say', 'net_amount = net_amount + 1'],
    ['receipts-replay', "another order's receipt", "order_id = '1'"],
    ['receipts-replay', 'another name of the order', "order_name = '#1'"],
    ['receipts-replay', "another sale's click", `click_id = '${NO_USER}'`, ACCEPTED],
    [
      'receipts-replay',
      'a rejected sale that lost its link',
      'link_id = null, click_id = null, offer_id = null, creator_id = null',
      "acceptance_status = 'rejected' and link_id is not null",
    ],
    ['sales-match-links', "another offer than the link's", `offer_id = '${NO_USER}'`, ACCEPTED],
    ['sales-match-links', 'a sale of no creator', 'creator_id = null', ACCEPTED],
    ['sales-match-links', 'another merchant', 'merchant_id = creator_id', ACCEPTED],
    ['sales-match-links', 'an offer without a link', 'link_id = null', ACCEPTED],
    ['sales-match-links', 'a link that does not exist', `link_id = '${NO_USER}'`, ACCEPTED],
    [
      'receipts-replay',
      'a rule version that never was',
      `receipt = replace(receipt, '"rule_version":', '"rule_version":9')`,
    ],
    ['receipts-replay', 'a signal about the buyer', 'buyer_name_matches = 1 - buyer_name_matches', ACCEPTED],
    [
      'decided-again-once',
      'a sale that claims to be decided again',
      'decided_at = created_at',
      ACCEPTED_ONCE,
    ],
    ['decided-again-once', 'a second decision that is hidden', 'decided_at = null', 'decided_at is not null'],
  ]),
  ...changes(
    'sale_decisions',
    [
      ['decided-again-once', 'another time of the first decision', 'decided_at = decided_at - 1'],
      [
        'decided-again-once',
        'the event of the second decision',
        'event_id = (select event_id from sales where id = sale_id)',
      ],
      [
        'former-decisions-replay',
        'a former receipt of an order that was paid',
        `receipt = replace(receipt, '"financial_status":"pending"', '"financial_status":"paid"')`,
      ],
      ['former-decisions-replay', 'a former receipt that is no JSON', "receipt = 'lost'"],
      [
        'former-decisions-replay',
        'the present receipt in place of the former',
        'receipt = (select receipt from sales where id = sale_id)',
      ],
      ['sales-after-events', 'a first decision from before its event came', 'decided_at = 1'],
    ],
    'sale_id',
  ),
  ...changes('pending_orders', [
    [
      'pending-orders-sales',
      'another commission than that of its sale',
      'expected_commission = 1',
      BECAME_SALE,
    ],
    [
      'pending-orders-sales',
      'an order that waits although it is paid',
      "state = 'pending', sale_id = null",
      BECAME_SALE,
    ],
    [
      'pending-orders-sales',
      'the sale of another order',
      "state = 'became_sale', sale_id = (select id from sales order by id limit 1)",
      "state = 'cancelled'",
    ],
    ['pending-orders-match-links', 'another creator', 'creator_id = merchant_id', "state = 'pending'"],
    [
      'pending-orders-match-links',
      'a link that does not exist',
      `link_id = '${NO_USER}'`,
      "state = 'pending'",
    ],
    [
      'rows-authentic-pending-orders',
      'a commission of one paisa more',
      'expected_commission = expected_commission + 1',
    ],
  ]),
  {
    invariant: 'rows-complete-pending-orders',
    what: 'a pending order that was deleted',
    statement: sql`delete from pending_orders where state = 'pending'`,
    subject: sql`select 'pending_orders' as subject`,
  },
  {
    invariant: 'pending-orders-no-money',
    what: 'an entry that comes from a pending order',
    statement: sql`update ledger_entries set subject_id = (select id from pending_orders where state = 'pending')
      where kind = 'credit_granted'`,
    subject: oneOf('pending_orders', "state = 'pending'"),
  },
  {
    invariant: 'pending-orders-as-reported',
    what: 'another order than its events reported',
    statement: change('pending_orders', "order_id = '1'", "state = 'pending'"),
    subject: oneOf('pending_orders', "state = 'pending'"),
  },
  {
    invariant: 'events-applied',
    what: 'a placement that is done and made nothing',
    statement: sql`delete from pending_orders where state = 'cancelled'`,
    subject: sql`select min(cast(id as text)) as subject from inbound_events where topic = 'orders/cancelled'`,
  },
  {
    invariant: 'coupons-of-links',
    what: 'a code that two links have',
    statement: sql`update link_coupons set code = 'BOTH', ends_at = null`,
    subject: sql`select min(cast(id as text)) as subject from link_coupons`,
  },
  {
    invariant: 'coupon-sales-in-force',
    what: 'a code that began after the order',
    statement: sql`update link_coupons set starts_at = starts_at + 86400000000`,
    subject: oneOf('sales', COUPON_SALE),
  },
  {
    invariant: 'coupon-sales-in-force',
    what: 'an offer that was not live at the order',
    statement: sql`update offer_status_changes set status = 'paused'`,
    subject: oneOf('sales', COUPON_SALE),
  },
  {
    invariant: 'one-sale-an-order',
    what: 'an order with two sales',
    statement: sql`update sales set order_id = 'twice'
      where store_id = (select store_id from sales group by store_id order by count(*) desc limit 1)`,
    subject: sql`select 'order twice' as subject`,
  },
  posting(
    'sales-in-journal',
    "another creator's account",
    "owner_id = (select id from users where role = 'merchant' limit 1)",
    {
      kind: 'sale_accepted',
      account: 'creator_pending',
      subject: 'subject_id',
    },
  ),
  click('a click that is lost', (id) => sql`delete from clicks where cast(id as text) = ${id}`),
  click('a click of another time', (id) => clickChange('created_at = created_at + 1', id)),
  click('a click of another link', (id) => clickChange(`link_id = '${NO_USER}'`, id)),
  click('a click that was not tracked', (id) => clickChange('tracked = 0', id)),
  {
    invariant: 'entries-dated',
    what: 'another time of the second decision',
    statement: sql`update sales set decided_at = decided_at + 1 where decided_at is not null`,
    subject: sql`select cast(id as text) as subject from ledger_entries
      where cast(subject_id as text) = ${one('sales', 'decided_at is not null')}`,
  },
  {
    invariant: 'decided-again-once',
    what: 'a former decision that is gone',
    statement: sql`delete from sale_decisions`,
    subject: oneOf('sales', 'decided_at is not null'),
  },
  {
    invariant: 'events-applied',
    what: 'a former decision whose event is another',
    statement: sql`update sale_decisions set event_id = ${NEW_ID}`,
    subject: oneOf('sales', 'decided_at is not null'),
  },
  {
    invariant: 'sales-after-events',
    what: 'a sale from before its event came',
    statement: sql`update sales set created_at = (
        select received_at - 1 from inbound_events as event where event.id = sales.event_id
      ) where cast(id as text) = ${one('sales', 'decided_at is null')}`,
    subject: oneOf('sales', 'decided_at is null'),
  },
]

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

export const SALE_TAMPERINGS: readonly Tampering[] = [...SALES, ...CLICKS]
