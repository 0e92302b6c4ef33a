import { type RawBuilder, sql } from 'kysely'

type Sql = RawBuilder<unknown>

/** A change behind the services' back that one invariant (at least) must report. */
export interface Tampering {
  invariant: string
  what: string
  statement: Sql
  /** Selects, before the change, a `subject` that the report must contain. */
  subject: Sql
}

export const NO_USER = '01900000-0000-7000-8000-000000000001'
const NEW_ID = sql.lit(NO_USER)

type Broken = readonly [statement: Sql, subject: Sql]

const breaking = (invariant: string, all: Readonly<Record<string, Broken>>): Tampering[] =>
  Object.entries(all).map(([what, [statement, subject]]) => ({ invariant, what, statement, subject }))

const named = (subject: string): Sql => sql`select ${sql.lit(subject)} as subject`

/** One row of a table by a condition, the same one on every run. */
function one(table: string, condition = 'true', key = 'id'): Sql {
  return sql`(select min(cast(${sql.id(key)} as text)) from ${sql.table(table)} where ${sql.raw(condition)})`
}

function oneOf(table: string, condition = 'true', column = 'id', key = 'id'): Sql {
  return sql`select cast(${sql.id(column)} as text) as subject from ${sql.table(table)}
    where cast(${sql.id(key)} as text) = ${one(table, condition, key)}`
}

function change(table: string, assignment: string, condition = 'true', key = 'id'): Sql {
  return sql`update ${sql.table(table)} set ${sql.raw(assignment)}
    where cast(${sql.id(key)} as text) = ${one(table, condition, key)}`
}

function remove(table: string, condition = 'true'): Sql {
  return sql`delete from ${sql.table(table)} where cast(id as text) = ${one(table, condition)}`
}

type Change = readonly [what: string, assignment: string, condition?: string]

/** Changes, by the invariant that they break, of the first row of a table that fits the condition; the report must name it by its `key`. */
function changes(table: string, all: Readonly<Record<string, readonly Change[]>>, key = 'id'): Tampering[] {
  return Object.entries(all).flatMap(([invariant, rows]) =>
    rows.map(([what, assignment, condition]) => ({
      ...{ invariant, what, statement: change(table, assignment, condition, key) },
      subject: oneOf(table, condition, key, key),
    })),
  )
}

const entryOf = (kind: string) => `kind = '${kind}'`

/** One posting of the first entry of a kind, which the report must name by `subject` of the entry. */
function posting(kind: string, account: string, assignment: string, subject = 'id'): Broken {
  const statement = sql`update ledger_postings set ${sql.raw(assignment)}
    where cast(entry_id as text) = ${one('ledger_entries', entryOf(kind))} and account = ${sql.lit(account)}`
  return [statement, oneOf('ledger_entries', entryOf(kind), subject)]
}

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
const REDATED = ENTRY_MOMENTS.map(([kind, table, column]): [string, Broken] => {
  const entry = one('ledger_entries', entryOf(kind))
  const statement = sql`update ${sql.table(table)} set ${sql.id(column)} = ${sql.id(column)} + 1
    where id = (select subject_id from ledger_entries where cast(id as text) = ${entry})`
  return [`another time of what a ${kind} entry is about`, [statement, sql`select ${entry} as subject`]]
})

const A_MERCHANT = "(select id from users where role = 'merchant' limit 1)"
const OTHERS_ACCOUNT = `owner_id = ${A_MERCHANT}`

const ENTRIES: Tampering[] = [
  ...changes('ledger_entries', {
    'entries-have-subjects': [
      ['an entry about nothing', `subject_id = '${NO_USER}'`],
      ['an entry of another kind', "kind = 'payout_created'", entryOf('credit_granted')],
    ],
  }),
  ...breaking('entries-balance', {
    'a leg of another amount': posting('sale_accepted', 'creator_pending', 'amount = amount + 1'),
    'an entry without legs': [
      sql`insert into ledger_entries (id, kind, subject_id, created_at, ledger_id, sequence, hash)
      values (${NEW_ID}, 'payout_failed', ${NEW_ID}, 0, ${NEW_ID}, 1, '')`,
      sql`select ${NEW_ID} as subject`,
    ],
  }),
  ...breaking('books-balance', {
    'a journal that does not sum to zero': [
      sql`update ledger_postings set amount = amount + 1 where account = 'platform_fees'`,
      named('journal'),
    ],
  }),
  ...breaking('entries-dated', Object.fromEntries(REDATED)),
  ...breaking('accounts-have-owners', {
    'an account without an owner': posting('payout_created', 'creator_released', `owner_id = '${NO_USER}'`),
  }),
]

/** An entry with one behind it in its ledger. */
const FOLLOWED = `exists (select 1 from ledger_entries as next
  where next.ledger_id = ledger_entries.ledger_id and next.sequence = ledger_entries.sequence + 1)`

/** The entry behind the first one that is followed: what the chain reports when that one is gone. */
const BEHIND = sql`select cast(next.id as text) as subject from ledger_entries as next
  join ledger_entries as entry on entry.ledger_id = next.ledger_id and next.sequence = entry.sequence + 1
  where cast(entry.id as text) = ${one('ledger_entries', FOLLOWED)}`

/** What a changed entry looks like, `chain.rule.test.ts` tries; here are changes of several rows, and of where they stand. */
const CHAIN: Tampering[] = [
  ...changes('ledger_entries', {
    'chain-unbroken': [
      ['another time', 'created_at = created_at + 1'],
      ["an entry in another party's ledger", `ledger_id = ${A_MERCHANT}`, entryOf('payout_created')],
    ],
  }),
  ...breaking('chain-unbroken', {
    'legs in another order': posting('sale_accepted', 'merchant_unbilled', 'line = 9'),
    'an entry that was taken out with its sale': [remove('ledger_entries', FOLLOWED), BEHIND],
    'an entry that was put in': [
      sql`insert into ledger_entries (id, kind, subject_id, created_at, ledger_id, sequence, hash)
      select ${NEW_ID}, kind, ${NEW_ID}, created_at, ledger_id, sequence, hash from ledger_entries
      where cast(id as text) = ${one('ledger_entries', entryOf('sale_accepted'))}`,
      sql`select ${NEW_ID} as subject`,
    ],
  }),
  ...breaking('keys-at-hand', {
    'an entry with a key that the service does not have': [
      change('ledger_entries', "hash = 'deadbeef' || substr(hash, 9)"),
      named('key deadbeef'),
    ],
  }),
]

/** The last entry of the ledger of the first one. */
const LAST = sql`(select cast(entry.id as text) from ledger_entries as entry
  join ledger_heads as head on head.ledger_id = entry.ledger_id and head.sequence = entry.sequence
  where cast(head.ledger_id as text) = (select min(cast(ledger_id as text)) from ledger_heads))`

const FIRST_HEAD = sql`select min(cast(ledger_id as text)) as subject from ledger_heads`
const onHeads = (statement: Sql): Broken => [
  sql`${statement} where cast(ledger_id as text) = (${FIRST_HEAD})`,
  FIRST_HEAD,
]

const HEADS: Tampering[] = [
  ...breaking('heads-at-ends', {
    'a last entry that was taken out': [
      sql`delete from ledger_entries where cast(id as text) = ${LAST}`,
      FIRST_HEAD,
    ],
    'a head with another hash': onHeads(sql`update ledger_heads set hash = 'another'`),
    'a ledger without a head': onHeads(sql`delete from ledger_heads`),
  }),
  ...breaking('heads-authentic', {
    'a head with another MAC': onHeads(sql`update ledger_heads set mac = substr(mac, 1, 72) || 'x'`),
    'a MAC without a key': onHeads(sql`update ledger_heads set mac = substr(mac, 10)`),
  }),
]

/** What a changed seal looks like, `seal.rule.test.ts` tries. */
const SEALS = breaking('seals-hold', {
  'another time': [
    sql`update ledger_seals set sealed_at = sealed_at + 1 where position = 1`,
    named('seal 1'),
  ],
  'a seal that was taken out': [sql`delete from ledger_seals where position = 1`, named('seal 2')],
  'a ledger that is left out': [sql`delete from ledger_seal_heads where position = 1`, named('seal 1')],
  'sealed entries that are gone, heads and all': [
    sql`delete from ledger_entries where exists (select 1 from ledger_seal_heads as sealed
      where sealed.position = 1 and sealed.ledger_id = ledger_entries.ledger_id and sealed.sequence = ledger_entries.sequence)`,
    named('seal 1'),
  ],
})

const ACCEPTED = "acceptance_status = 'accepted'"
const REJECTED = "acceptance_status = 'rejected'"
const COUPON_SALE = 'coupon_code is not null'
const TWICE_DECIDED = 'decided_at is not null'
const BECAME_SALE = "state = 'became_sale'"
const WAITS = "state = 'pending'"
const NO_LINK = `link_id = '${NO_USER}'`

/** The click of the first accepted sale, which the report must name. */
const CLICK = sql`(select cast(click_id as text) from sales where cast(id as text) = ${one('sales', ACCEPTED)})`
const onClick = (statement: Sql): Broken => [
  sql`${statement} where cast(id as text) = ${CLICK}`,
  oneOf('sales', ACCEPTED),
]
const inReceipt = (from: string, to: string) => `receipt = replace(receipt, '${from}', '${to}')`

const SALES: Tampering[] = [
  ...changes('offers', {
    'offer-statuses': [['an offer paused in passing', "status = 'paused'", "status = 'live'"]],
  }),
  ...changes('link_coupons', {
    'coupons-of-links': [['a code of another merchant', `merchant_id = '${NO_USER}'`]],
  }),
  ...changes('sales', {
    'coupon-sales-in-force': [['a code that the link never had', "coupon_code = 'OTHER'", COUPON_SALE]],
    'sale-amounts': [
      ['a commission of one paisa more', 'commission = commission + 1', ACCEPTED],
      ['another rate than the locked one', 'commission_rate = 1251', ACCEPTED],
      ['a rejected sale that pays', 'commission = 1', REJECTED],
      ['a sale of another creator than the link is', 'creator_id = merchant_id', ACCEPTED],
    ],
    'sales-in-journal': [
      ['another fee than the journal has', 'platform_fee = platform_fee + 1', ACCEPTED],
      ['a rejected sale that is accepted afterwards', ACCEPTED, REJECTED],
    ],
    'sales-in-cycles': [
      ['a sale after the end of its cycle', 'created_at = created_at + 9000000000000', ACCEPTED],
    ],
    'receipts-replay': [
      ['a receipt with another price', inReceipt('"unit_price":', '"unit_price":1'), ACCEPTED],
      ['a check that saw something else', inReceipt('"tolerance_ms":', '"tolerance_ms":1'), ACCEPTED],
      ['a receipt that is no JSON', "receipt = 'lost'"],
      ['a net amount that the receipt does not say', 'net_amount = net_amount + 1'],
      ["another order's receipt", "order_id = '1'"],
      ['another name of the order', "order_name = '#1'"],
      ["another sale's click", `click_id = '${NO_USER}'`, ACCEPTED],
      [
        'a rejected sale that lost its link',
        'link_id = null, click_id = null, offer_id = null, creator_id = null',
        `${REJECTED} and link_id is not null`,
      ],
      ['a rule version that never was', inReceipt('"rule_version":', '"rule_version":9')],
      ['a signal about the buyer', 'buyer_name_matches = 1 - buyer_name_matches', ACCEPTED],
    ],
    'sales-match-links': [
      ["another offer than the link's", `offer_id = '${NO_USER}'`, ACCEPTED],
      ['a sale of no creator', 'creator_id = null', ACCEPTED],
      ['another merchant', 'merchant_id = creator_id', ACCEPTED],
      ['an offer without a link', 'link_id = null', ACCEPTED],
      ['a link that does not exist', NO_LINK, ACCEPTED],
    ],
    'decided-again-once': [
      [
        'a sale that claims to be decided again',
        'decided_at = created_at',
        `${ACCEPTED} and decided_at is null`,
      ],
      ['a second decision that is hidden', 'decided_at = null', TWICE_DECIDED],
    ],
  }),
  ...changes(
    'sale_decisions',
    {
      'decided-again-once': [
        ['another time of the first decision', 'decided_at = decided_at - 1'],
        ['the event of the second decision', 'event_id = (select event_id from sales where id = sale_id)'],
      ],
      'former-decisions-replay': [
        [
          'a former receipt of a paid order',
          inReceipt('"financial_status":"pending"', '"financial_status":"paid"'),
        ],
        ['a former receipt that is no JSON', "receipt = 'lost'"],
        ['the present receipt as the former', 'receipt = (select receipt from sales where id = sale_id)'],
      ],
      'sales-after-events': [['a first decision from before its event came', 'decided_at = 1']],
    },
    'sale_id',
  ),
  ...changes('pending_orders', {
    'pending-orders-sales': [
      ['another commission than that of its sale', 'expected_commission = 1', BECAME_SALE],
      ['an order that waits although it is paid', `${WAITS}, sale_id = null`, BECAME_SALE],
      [
        'the sale of another order',
        `${BECAME_SALE}, sale_id = (select id from sales order by id limit 1)`,
        "state = 'cancelled'",
      ],
    ],
    'pending-orders-match-links': [
      ['another creator', 'creator_id = merchant_id', WAITS],
      ['a link that does not exist', NO_LINK, WAITS],
    ],
    'pending-orders-as-reported': [['another order than its events reported', "order_id = '1'", WAITS]],
  }),
  ...breaking('pending-orders-no-money', {
    'an entry that comes from a pending order': [
      sql`update ledger_entries set subject_id = (select id from pending_orders where state = 'pending')
        where kind = 'credit_granted'`,
      oneOf('pending_orders', WAITS),
    ],
  }),
  ...breaking('rows-complete-pending-orders', {
    'a pending order that was deleted': [remove('pending_orders', WAITS), named('pending_orders')],
  }),
  ...breaking('events-applied', {
    'a placement that is done and made nothing': [
      remove('pending_orders', "state = 'cancelled'"),
      oneOf('inbound_events', "topic = 'orders/cancelled'"),
    ],
    'a former decision whose event is another': [
      sql`update sale_decisions set event_id = ${NEW_ID}`,
      oneOf('sales', TWICE_DECIDED),
    ],
  }),
  ...breaking('coupons-of-links', {
    'a code that two links have': [
      sql`update link_coupons set code = 'BOTH', ends_at = null`,
      sql`select min(cast(id as text)) as subject from link_coupons`,
    ],
  }),
  ...breaking('coupon-sales-in-force', {
    'a code that began after the order': [
      sql`update link_coupons set starts_at = starts_at + 86400000000`,
      oneOf('sales', COUPON_SALE),
    ],
    'an offer that was not live at the order': [
      sql`update offer_status_changes set status = 'paused'`,
      oneOf('sales', COUPON_SALE),
    ],
  }),
  ...breaking('one-sale-an-order', {
    'an order with two sales': [
      sql`update sales set order_id = 'twice'
      where store_id = (select store_id from sales group by store_id order by count(*) desc limit 1)`,
      named('order twice'),
    ],
  }),
  ...breaking('sales-in-journal', {
    "another creator's account": posting('sale_accepted', 'creator_pending', OTHERS_ACCOUNT, 'subject_id'),
  }),
  ...breaking('receipts-replay', {
    'a click that is lost': onClick(sql`delete from clicks`),
    'a click of another time': onClick(sql`update clicks set created_at = created_at + 1`),
    'a click of another link': onClick(sql`update clicks set ${sql.raw(NO_LINK)}`),
    'a click that was not tracked': onClick(sql`update clicks set tracked = 0`),
  }),
  ...breaking('entries-dated', {
    'another time of the second decision': [
      sql`update sales set decided_at = decided_at + 1 where decided_at is not null`,
      sql`select cast(id as text) as subject from ledger_entries
      where cast(subject_id as text) = ${one('sales', TWICE_DECIDED)}`,
    ],
  }),
  ...breaking('decided-again-once', {
    'a former decision that is gone': [sql`delete from sale_decisions`, oneOf('sales', TWICE_DECIDED)],
  }),
  ...breaking('sales-after-events', {
    'a sale from before its event came': [
      sql`update sales set created_at = (
        select received_at - 1 from inbound_events as event where event.id = sales.event_id
      ) where cast(id as text) = ${one('sales', 'decided_at is null')}`,
      oneOf('sales', 'decided_at is null'),
    ],
  }),
]

/** A change of the counts of each visited link; the report must name one of them. */
const miscounted = (clicks: number): Broken => [
  sql`insert into click_counts (link_id, clicks, unique_clicks)
    select link_id, ${sql.lit(clicks)}, 0 from clicks where kind = 'visit' and tracked = 1
    group by link_id on conflict (link_id) do update set clicks = click_counts.clicks + ${sql.lit(clicks)}`,
  oneOf('clicks', "kind = 'visit' and tracked = 1", 'link_id'),
]

const CLICKS = breaking('visits-counted', {
  'a visit that the counts miss': miscounted(-1),
  'a visit that never was': miscounted(1),
})

const CHARGED = "state = 'charged'"
const CLOSED = "state = 'closed'"

const BILLING: Tampering[] = [
  ...changes('billing_cycles', {
    'cycles-tile-time': [
      ['a gap', 'period_start = period_start + 1', "state = 'open'"],
      ['an open cycle before others', "state = 'open'", CHARGED],
    ],
    'cycle-totals': [
      ['a commission total of one paisa more', 'commission_total = commission_total + 1'],
      ['a sale too many', 'sales_count = sales_count + 1', CLOSED],
    ],
    'amounts-in-range': [['a total beyond the bound', 'fee_total = 9007199254740993', CLOSED]],
    'cycles-in-journal': [
      ['another amount due', 'amount_due = amount_due - 1', CHARGED],
      ['a charge that the journal does not know', CHARGED, CLOSED],
      ['a credit used twice', 'credit_total = credit_total + 1', CLOSED],
    ],
    'invoice-attempts': [
      ['an invoice of another amount', 'amount_due = amount_due + 1', CLOSED],
      ["another invoice's id", "processor_invoice_id = 'inv_other'", CHARGED],
    ],
    'charges-as-confirmed': [
      ['another payment than the event names', "processor_payment_reference = 'pay_other'", CHARGED],
    ],
  }),
  ...changes(
    'billing_cycle_shares',
    {
      'cycle-shares': [['a share of one paisa more', 'commission = commission + 1']],
      'shares-paid-once': [['a paid share that is free again', 'carried = 0', 'carried > 0']],
      'shares-released': [
        ['a share released before its cycle is charged', 'released_at = 1', 'released_at is null'],
        ['another time of release', 'released_at = released_at + 1', 'released_at is not null'],
      ],
    },
    'billing_cycle_id',
  ),
  ...changes('credits', { credits: [['a credit of one paisa more', 'amount = amount + 1']] }),
  ...breaking('rows-complete-billing-cycles', {
    'a deleted cycle': [remove('billing_cycles', CLOSED), named('billing_cycles')],
  }),
  ...breaking('credits', {
    'more credit used than was granted': [
      change('billing_cycles', 'credit_total = 900000', CLOSED),
      oneOf('billing_cycles', CLOSED, 'merchant_id'),
    ],
  }),
  ...breaking('merchant-balances', {
    "a closed cycle that is gone from its merchant's account": [
      change('billing_cycles', "merchant_id = (select id from users where role = 'creator' limit 1)", CLOSED),
      oneOf('billing_cycles', CLOSED, 'merchant_id'),
    ],
  }),
  ...breaking('invoice-attempts', {
    'a closed cycle without an invoice request': [
      sql`delete from processor_attempts where cast(subject_id as text) = ${one('billing_cycles', CLOSED)}`,
      oneOf('billing_cycles', CLOSED),
    ],
  }),
]

const PAID = "state = 'paid'"
const FAILED = "state = 'failed'"

const PAYOUTS: Tampering[] = [
  ...changes('payouts', {
    'payout-lines': [['an amount that its lines do not make', 'amount = amount + 1']],
    'payouts-in-journal': [['a payment that the journal does not know', PAID, "state = 'submitted'"]],
    'payout-attempts': [
      ["another payout's id", "processor_payout_id = 'po_other'", PAID],
      ['a payout that was submitted without being sent', "state = 'submitted'", WAITS],
    ],
    'settled-by-events': [['a payout that is paid though the processor said that it failed', PAID, FAILED]],
  }),
  ...breaking('payout-lines', {
    'a line that names another merchant': [
      sql`update payout_lines set merchant_id = (select creator_id from payouts limit 1)
      where cast(payout_id as text) = ${one('payouts', PAID)}`,
      oneOf('payouts', PAID),
    ],
  }),
  ...breaking('shares-paid-once', {
    'a share that is in two payouts': [
      sql`update payouts set state = 'submitted' where state = 'failed'`,
      sql`select cast(billing_cycle_id as text) as subject from payout_lines
      where payout_id = (select id from payouts where state = 'failed')`,
    ],
  }),
  ...breaking('payouts-in-journal', {
    'a payout without its entry': [
      sql`update ledger_entries set kind = 'payout_failed'
      where kind = 'payout_created' and cast(subject_id as text) = ${one('payouts', PAID)}`,
      oneOf('payouts', PAID),
    ],
  }),
  ...breaking('creator-balances', {
    'a payout that was lost': [remove('payouts', PAID), oneOf('payouts', PAID, 'creator_id')],
  }),
]

const DONE = "state = 'done'"
const SALE_DONE = `source = 'store' and ${DONE}`
/** The event with the outcome that the first charged cycle is. */
const OF_CHARGE = sql`from inbound_events where result like '%' || ${one('billing_cycles', CHARGED)} || '%'`

const EVENTS: Tampering[] = [
  ...changes('inbound_events', {
    'events-explained': [['an event ignored without a reason', 'reason = null', "state = 'ignored'"]],
    'events-once': [['a taken delivery id that took effect', DONE, "conflict_hash <> ''"]],
  }),
  ...changes(
    'inbound_bodies',
    {
      'bodies-hash': [
        ['a body with one more space', "body = body || ' '", "encoding = 'utf8'"],
        ['a body of other bytes', "body = 'AAAA'", "encoding = 'base64'"],
      ],
    },
    'event_id',
  ),
  ...breaking('rows-complete-inbound-events', {
    'an applied event that was deleted': [
      remove('inbound_events', "state = 'ignored'"),
      named('inbound_events'),
    ],
    'an applied event that is to be applied again': [
      change('inbound_events', `${WAITS}, finished_at = null`, DONE),
      named('inbound_events'),
    ],
  }),
  ...breaking('events-once', {
    'a delivery that is kept twice': [
      sql`update inbound_events set conflict_hash = '' where delivery_id = 'twice'`,
      named('delivery twice'),
    ],
  }),
  ...breaking('events-explained', {
    'an event that is set aside without a flag': [
      sql`delete from flags where subject_type in ('inbound_event', 'store_events')`,
      oneOf('inbound_events', "state = 'set_aside'"),
    ],
  }),
  ...breaking('events-applied', {
    'a sale whose event is lost': [
      sql`delete from inbound_events where cast(id as text) =
      (select cast(event_id as text) from sales where cast(id as text) = ${one('sales')})`,
      oneOf('sales'),
    ],
    'an order event that is done and made nothing': [remove('sales'), oneOf('sales', 'true', 'event_id')],
  }),
  ...breaking('sales-as-reported', {
    'a sale of another order': [
      sql`update sales set order_id = '1' where cast(event_id as text) = ${one('inbound_events', SALE_DONE)}`,
      oneOf('inbound_events', SALE_DONE),
    ],
  }),
  ...breaking('settled-by-events', {
    'a cycle that no event charged': [sql`delete ${OF_CHARGE}`, oneOf('billing_cycles', CHARGED)],
    'an event that charged a cycle which is not charged': [
      change('billing_cycles', CLOSED, CHARGED),
      sql`select min(cast(id as text)) as subject ${OF_CHARGE}`,
    ],
  }),
]

const OPERATIONS: Tampering[] = [
  ...changes('users', {
    'suspensions-recorded': [
      ['a user without a record of the suspension', 'suspended_at = 1', 'suspended_at is null'],
    ],
  }),
  ...breaking('credits-recorded', {
    'a credit without a grant': [
      sql`delete from audit_entries where action = 'billing.credit'`,
      oneOf('credits'),
    ],
  }),
  ...breaking('suspensions-recorded', {
    'a suspension that is gone from the record': [
      sql`delete from audit_entries where action = 'user.suspend'`,
      oneOf('users', 'suspended_at is not null'),
    ],
  }),
  ...breaking('second-attempts-recorded', {
    'a repeated invoice request without a record': [
      sql`delete from audit_entries where action = 'billing.reissue'`,
      sql`select min(subject_id) as subject from audit_entries where action = 'billing.reissue'`,
    ],
    'a repeated payout under another attempt than the record names': [
      sql`update audit_entries set after = '{"attempt_id":"another"}' where action = 'payout.retry'`,
      sql`select min(subject_id) as subject from audit_entries where action = 'payout.retry'`,
    ],
  }),
]

export const TAMPERINGS: readonly Tampering[] = [
  ...[...ENTRIES, ...CHAIN, ...HEADS, ...SEALS, ...SALES, ...CLICKS],
  ...[...BILLING, ...PAYOUTS, ...EVENTS, ...OPERATIONS],
]
