import { type RawBuilder, sql } from 'kysely'

/** A change behind the services' back that one invariant (at least) must report. */
export interface Tampering {
  invariant: string
  what: string
  statement: RawBuilder<unknown>
  /** Selects, before the change, a `subject` that the report must contain. */
  subject: RawBuilder<unknown>
}

export const NO_USER = '01900000-0000-7000-8000-000000000001'
const NEW_ID = sql.lit(NO_USER)

/** One row of a table by a condition, the same one on every run. */
function one(table: string, condition: string): RawBuilder<unknown> {
  return sql`(select min(cast(id as text)) from ${sql.table(table)} where ${sql.raw(condition)})`
}

function oneOf(table: string, condition: string): RawBuilder<unknown> {
  return sql`select ${one(table, condition)} as subject`
}

function change(table: string, assignment: string, condition: string): RawBuilder<unknown> {
  return sql`update ${sql.table(table)} set ${sql.raw(assignment)}
    where cast(id as text) = ${one(table, condition)}`
}

type Change = readonly [invariant: string, what: string, assignment: string, condition?: string]

/** Changes of the first row of a table that fits the condition, which the report must name by its `key`. */
function changes(table: string, rows: readonly Change[], key = 'id'): Tampering[] {
  return rows.map(([invariant, what, assignment, condition = 'true']) => {
    const first = sql`(select min(cast(${sql.id(key)} as text)) from ${sql.table(table)} where ${sql.raw(condition)})`
    return {
      invariant,
      what,
      statement: sql`update ${sql.table(table)} set ${sql.raw(assignment)} where cast(${sql.id(key)} as text) = ${first}`,
      subject: sql`select ${first} as subject`,
    }
  })
}

const entryOf = (kind: string) => `kind = '${kind}'`
const ACCEPTED = "acceptance_status = 'accepted'"

/** One posting of the first entry of a kind, which the report must name by `subject` of the entry. */
function posting(
  invariant: string,
  what: string,
  assignment: string,
  of: { kind: string; account: string; subject?: string },
): Tampering {
  const entry = one('ledger_entries', entryOf(of.kind))
  return {
    invariant,
    what,
    statement: sql`update ledger_postings set ${sql.raw(assignment)}
      where cast(entry_id as text) = ${entry} and account = ${sql.lit(of.account)}`,
    subject: sql`select cast(${sql.raw(of.subject ?? 'id')} as text) as subject from ledger_entries
      where cast(id as text) = ${entry}`,
  }
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

const JOURNAL_TAMPERINGS: Tampering[] = [
  ...changes('ledger_entries', [
    ['entries-have-subjects', 'an entry about nothing', `subject_id = '${NO_USER}'`],
    [
      'entries-have-subjects',
      'an entry of another kind',
      "kind = 'payout_created'",
      entryOf('credit_granted'),
    ],
  ]),
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

const COUPON_SALE = 'coupon_code is not null'

const SALE_TAMPERINGS: Tampering[] = [
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

const SALE_ENTRY = one('ledger_entries', entryOf('sale_accepted'))
/** An entry with one behind it in its ledger. */
const FOLLOWED = `exists (select 1 from ledger_entries as next
  where next.ledger_id = ledger_entries.ledger_id and next.sequence = ledger_entries.sequence + 1)`

/** The entry behind the first one that is followed: what the chain reports when that one is gone or moved. */
const BEHIND = sql`select cast(next.id as text) as subject from ledger_entries as next
  join ledger_entries as entry on entry.ledger_id = next.ledger_id and next.sequence = entry.sequence + 1
  where cast(entry.id as text) = ${one('ledger_entries', FOLLOWED)}`

function broken(what: string, statement: RawBuilder<unknown>, subject: RawBuilder<unknown>): Tampering {
  return { invariant: 'chain-unbroken', what, statement, subject }
}

const CHAIN: Tampering[] = [
  ...changes('ledger_entries', [
    ['chain-unbroken', 'another time', 'created_at = created_at + 1'],
    ['chain-unbroken', 'another hash', "hash = 'another'"],
    ['chain-unbroken', 'a hash without a key', 'hash = substr(hash, 10)'],
    ['chain-unbroken', 'another subject', `subject_id = ledger_id`],
    [
      'chain-unbroken',
      "an entry in another party's ledger",
      "ledger_id = (select id from users where role = 'merchant' limit 1)",
      entryOf('payout_created'),
    ],
  ]),
  broken(
    'an amount that was changed on both sides, so that it still balances',
    sql`update ledger_postings set amount = amount + case when amount > 0 then 1 else -1 end
      where cast(entry_id as text) = ${SALE_ENTRY} and account in ('merchant_unbilled', 'creator_pending')`,
    sql`select ${SALE_ENTRY} as subject`,
  ),
  posting(
    'chain-unbroken',
    "another creator's account",
    "owner_id = (select id from users where role = 'merchant' limit 1)",
    { kind: 'sale_accepted', account: 'creator_pending' },
  ),
  posting('chain-unbroken', 'legs in another order', 'line = 9', {
    kind: 'sale_accepted',
    account: 'merchant_unbilled',
  }),
  {
    invariant: 'keys-at-hand',
    what: 'an entry with a key that the service does not have',
    statement: change('ledger_entries', "hash = 'deadbeef' || substr(hash, 9)", 'true'),
    subject: sql`select 'key deadbeef' as subject`,
  },
  broken(
    'an entry that was taken out with its sale',
    sql`delete from ledger_entries where cast(id as text) = ${one('ledger_entries', FOLLOWED)}`,
    BEHIND,
  ),
  broken(
    'two entries that changed places',
    sql`update ledger_entries set sequence = case when cast(id as text) = ${one('ledger_entries', FOLLOWED)}
        then sequence + 1 else sequence - 1 end
      where cast(id as text) in (${one('ledger_entries', FOLLOWED)}, (${BEHIND}))`,
    BEHIND,
  ),
  broken(
    'an entry that was put in',
    sql`insert into ledger_entries (id, kind, subject_id, created_at, ledger_id, sequence, hash)
      select ${NEW_ID}, kind, ${NEW_ID}, created_at, ledger_id, sequence, hash from ledger_entries
      where cast(id as text) = ${SALE_ENTRY}`,
    sql`select ${NEW_ID} as subject`,
  ),
]

/** The last entry of the ledger of the first one. */
const LAST = sql`(select cast(entry.id as text) from ledger_entries as entry
  join ledger_heads as head on head.ledger_id = entry.ledger_id and head.sequence = entry.sequence
  where cast(head.ledger_id as text) = (select min(cast(ledger_id as text)) from ledger_heads))`
const FIRST_LEDGER = sql`select min(cast(ledger_id as text)) as subject from ledger_heads`

function head(what: string, statement: RawBuilder<unknown>): Tampering {
  return { invariant: 'heads-at-ends', what, statement, subject: FIRST_LEDGER }
}

const OF_FIRST = sql`where cast(ledger_id as text) = (select min(cast(ledger_id as text)) from ledger_heads)`

const HEADS: Tampering[] = [
  head('a last entry that was taken out', sql`delete from ledger_entries where cast(id as text) = ${LAST}`),
  head('a head that was moved on', sql`update ledger_heads set sequence = sequence + 1 ${OF_FIRST}`),
  head('a head with another hash', sql`update ledger_heads set hash = 'another' ${OF_FIRST}`),
  head('a ledger without a head', sql`delete from ledger_heads ${OF_FIRST}`),
]

function forgedHead(what: string, statement: RawBuilder<unknown>): Tampering {
  return { invariant: 'heads-authentic', what, statement, subject: FIRST_LEDGER }
}

const MACS: Tampering[] = [
  forgedHead(
    'a head with another MAC',
    sql`update ledger_heads set mac = substr(mac, 1, 72) || 'x' ${OF_FIRST}`,
  ),
  forgedHead('a head without a MAC', sql`update ledger_heads set mac = null ${OF_FIRST}`),
  forgedHead('a MAC without a key', sql`update ledger_heads set mac = substr(mac, 10) ${OF_FIRST}`),
  forgedHead(
    'a head that was moved back to the entry before',
    sql`update ledger_heads set sequence = sequence - 1, hash = (select former.hash from ledger_entries as former
      where former.ledger_id = ledger_heads.ledger_id and former.sequence = ledger_heads.sequence - 1) ${OF_FIRST}`,
  ),
]

function seal(what: string, statement: RawBuilder<unknown>, subject = 'seal 1'): Tampering {
  return { invariant: 'seals-hold', what, statement, subject: sql`select ${sql.lit(subject)} as subject` }
}

const SEALS: Tampering[] = [
  seal('another time', sql`update ledger_seals set sealed_at = sealed_at + 1 where position = 1`),
  seal('another digest', sql`update ledger_seals set digest = 'another' where position = 1`),
  seal('a digest without a key', sql`update ledger_seals set digest = substr(digest, 10) where position = 1`),
  seal('a key that is retired', sql`update ledger_seals set retires = 'deadbeef' where position = 1`),
  seal('a seal that was taken out', sql`delete from ledger_seals where position = 1`, 'seal 2'),
  seal('a ledger that is left out', sql`delete from ledger_seal_heads where position = 1`),
  seal('another hash', sql`update ledger_seal_heads set hash = 'another' where position = 1`),
  seal(
    'sealed entries that are gone, heads and all',
    sql`delete from ledger_entries where exists (select 1 from ledger_seal_heads as sealed
      where sealed.position = 1 and sealed.ledger_id = ledger_entries.ledger_id and sealed.sequence = ledger_entries.sequence)`,
  ),
]

const CHAIN_TAMPERINGS: Tampering[] = [...CHAIN, ...HEADS, ...MACS, ...SEALS]

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
  ...CHAIN_TAMPERINGS,
  ...SALE_TAMPERINGS,
  ...CLICKS,
  ...BILLING,
  ...PAYOUTS,
  ...EVENTS,
  ...BODIES,
  ...OPERATIONS,
]
