import { type RawBuilder, sql } from 'kysely'
import {
  ACCEPTED,
  changed,
  entryOf,
  NEW_ID,
  NO_USER,
  one,
  oneOf,
  posting,
  type Tampering,
} from './tampering.ts'

/** Which column of its subject an entry shares its moment with. */
const ENTRY_MOMENTS = [
  ['sale_accepted', 'sales', 'created_at'],
  ['credit_granted', 'credits', 'created_at'],
  ['cycle_closed', 'billing_cycles', 'closed_at'],
  ['cycle_charged', 'billing_cycles', 'charged_at'],
  ['payout_created', 'payouts', 'created_at'],
  ['payout_confirmed', 'payouts', 'settled_at'],
  ['payout_failed', 'payouts', 'settled_at'],
] as const

/** A subject dated a millisecond later than the first entry of a kind, which the report must name. */
function redated(kind: string, table: string, column: string): Tampering {
  const entry = one('ledger_entries', entryOf(kind))
  return {
    invariant: 'entries-dated',
    what: `another time of what a ${kind} entry is about`,
    statement: sql`update ${sql.table(table)} set ${sql.id(column)} = ${sql.id(column)} + 1
      where id = (select subject_id from ledger_entries where cast(id as text) = ${entry})`,
    subject: sql`select ${entry} as subject`,
  }
}

export const JOURNAL_TAMPERINGS: Tampering[] = [
  posting('entries-balance', 'a leg of another amount', 'amount = amount + 1', {
    kind: 'sale_accepted',
    account: 'creator_pending',
  }),
  {
    invariant: 'entries-balance',
    what: 'an entry without legs',
    statement: sql`insert into ledger_entries (id, kind, subject_id, created_at, ledger_id, sequence, hash)
      values (${NEW_ID}, 'payout_failed', ${NEW_ID}, 0, ${NEW_ID}, 1, '')`,
    subject: sql`select ${NEW_ID} as subject`,
  },
  {
    invariant: 'books-balance',
    what: 'a journal that does not sum to zero',
    statement: sql`update ledger_postings set amount = amount + 1 where account = 'platform_fees'`,
    subject: sql`select 'journal' as subject`,
  },
  changed('entries-have-subjects', 'an entry about nothing', 'ledger_entries', `subject_id = '${NO_USER}'`),
  changed(
    'entries-have-subjects',
    'an entry of another kind',
    'ledger_entries',
    "kind = 'payout_created'",
    entryOf('credit_granted'),
  ),
  ...ENTRY_MOMENTS.map(([kind, table, column]) => redated(kind, table, column)),
  posting('accounts-have-owners', 'an account without an owner', `owner_id = '${NO_USER}'`, {
    kind: 'payout_created',
    account: 'creator_released',
  }),
]

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

/** A change of the first former decision, which the report must name by its sale. */
function former(invariant: string, what: string, assignment: string): Tampering {
  const sale = sql`(select min(cast(sale_id as text)) from sale_decisions)`
  return {
    invariant,
    what,
    statement: sql`update sale_decisions set ${sql.raw(assignment)} where cast(sale_id as text) = ${sale}`,
    subject: sql`select ${sale} as subject`,
  }
}

const COUPON_SALE = 'coupon_code is not null'

export const SALE_TAMPERINGS: Tampering[] = [
  changed('offer-statuses', 'an offer paused in passing', 'offers', "status = 'paused'", "status = 'live'"),
  changed('coupons-of-links', 'a code of another merchant', 'link_coupons', `merchant_id = '${NO_USER}'`),
  {
    invariant: 'coupons-of-links',
    what: 'a code that two links have',
    statement: sql`update link_coupons set code = 'BOTH', ends_at = null`,
    subject: sql`select min(cast(id as text)) as subject from link_coupons`,
  },
  changed(
    'coupon-sales-in-force',
    'a code that the link never had',
    'sales',
    "coupon_code = 'OTHER'",
    COUPON_SALE,
  ),
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
  changed('sale-amounts', 'a commission of one paisa more', 'sales', 'commission = commission + 1', ACCEPTED),
  changed('sale-amounts', 'another rate than the locked one', 'sales', 'commission_rate = 1251', ACCEPTED),
  changed(
    'sale-amounts',
    'a rejected sale that pays',
    'sales',
    'commission = 1',
    "acceptance_status = 'rejected'",
  ),
  changed(
    'sale-amounts',
    'a sale of another creator than the link is',
    'sales',
    'creator_id = merchant_id',
    ACCEPTED,
  ),
  changed(
    'sales-in-journal',
    'another fee than the journal has',
    'sales',
    'platform_fee = platform_fee + 1',
    ACCEPTED,
  ),
  changed(
    'sales-in-journal',
    'a rejected sale that is accepted afterwards',
    'sales',
    "acceptance_status = 'accepted'",
    "acceptance_status = 'rejected'",
  ),
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
  changed(
    'sales-in-cycles',
    'a sale after the end of its cycle',
    'sales',
    'created_at = created_at + 9000000000000',
    ACCEPTED,
  ),
  changed(
    'receipts-replay',
    'a receipt with another price',
    'sales',
    `receipt = replace(receipt, '"unit_price":', '"unit_price":1')`,
    ACCEPTED,
  ),
  changed(
    'receipts-replay',
    'a check of the decision that saw something else',
    'sales',
    `receipt = replace(receipt, '"tolerance_ms":', '"tolerance_ms":1')`,
    ACCEPTED,
  ),
  changed('receipts-replay', 'a receipt that is no JSON', 'sales', "receipt = 'lost'"),
  changed(
    'receipts-replay',
    'a net amount that the receipt does not say',
    'sales',
    'net_amount = net_amount + 1',
  ),
  changed('receipts-replay', "another order's receipt", 'sales', "order_id = '1'"),
  changed('receipts-replay', 'another name of the order', 'sales', "order_name = '#1'"),
  changed('receipts-replay', "another sale's click", 'sales', `click_id = '${NO_USER}'`, ACCEPTED),
  changed(
    'receipts-replay',
    'a rejected sale that lost its link',
    'sales',
    'link_id = null, click_id = null, offer_id = null, creator_id = null',
    "acceptance_status = 'rejected' and link_id is not null",
  ),
  click('a click that is lost', (id) => sql`delete from clicks where cast(id as text) = ${id}`),
  click('a click of another time', (id) => clickChange('created_at = created_at + 1', id)),
  click('a click of another link', (id) => clickChange(`link_id = '${NO_USER}'`, id)),
  click('a click that was not tracked', (id) => clickChange('tracked = 0', id)),
  changed('sales-match-links', "another offer than the link's", 'sales', `offer_id = '${NO_USER}'`, ACCEPTED),
  changed('sales-match-links', 'a sale of no creator', 'sales', 'creator_id = null', ACCEPTED),
  changed('sales-match-links', 'another merchant', 'sales', 'merchant_id = creator_id', ACCEPTED),
  changed('sales-match-links', 'an offer without a link', 'sales', 'link_id = null', ACCEPTED),
  changed('sales-match-links', 'a link that does not exist', 'sales', `link_id = '${NO_USER}'`, ACCEPTED),
  changed(
    'receipts-replay',
    'a rule version that never was',
    'sales',
    `receipt = replace(receipt, '"rule_version":', '"rule_version":9')`,
  ),
  changed(
    'receipts-replay',
    'a signal about the buyer',
    'sales',
    'buyer_name_matches = 1 - buyer_name_matches',
    ACCEPTED,
  ),
  changed(
    'decided-again-once',
    'a sale that claims to be decided again',
    'sales',
    'decided_at = created_at',
    ACCEPTED_ONCE,
  ),
  changed(
    'decided-again-once',
    'a second decision that is hidden',
    'sales',
    'decided_at = null',
    'decided_at is not null',
  ),
  {
    invariant: 'entries-dated',
    what: 'another time of the second decision',
    statement: sql`update sales set decided_at = decided_at + 1 where decided_at is not null`,
    subject: sql`select cast(id as text) as subject from ledger_entries
      where cast(subject_id as text) = ${one('sales', 'decided_at is not null')}`,
  },
  former('decided-again-once', 'another time of the first decision', 'decided_at = decided_at - 1'),
  former(
    'decided-again-once',
    'the event of the second decision',
    'event_id = (select event_id from sales where id = sale_id)',
  ),
  former(
    'former-decisions-replay',
    'a former receipt of an order that was paid',
    `receipt = replace(receipt, '"financial_status":"pending"', '"financial_status":"paid"')`,
  ),
  former('former-decisions-replay', 'a former receipt that is no JSON', "receipt = 'lost'"),
  former(
    'former-decisions-replay',
    'the present receipt in place of the former',
    'receipt = (select receipt from sales where id = sale_id)',
  ),
  former('sales-after-events', 'a first decision from before its event came', 'decided_at = 1'),
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
