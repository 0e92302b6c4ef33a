import { type Insertable, sql } from 'kysely'
import type { OpenDatabase } from '../../platform/database/open-database.ts'
import type { Schema } from '../../platform/database/schema.ts'
import { NIL_ID } from '../../platform/ids.ts'

type Rows = { [Table in keyof Schema]: Omit<Insertable<Schema[Table]>, 'row_digest'>[] }

/** A recognizable UUIDv7. */
export function idNumber(number: number): string {
  return `01900000-0000-7000-8000-${String(number).padStart(12, '0')}`
}

const AT = 1_790_000_000_000
/** The id of a key that journal rows name. */
const KEY = 'ab12cd34'
/** Of a row, made with that key. */
const DIGEST = `${KEY}.${'ef'.repeat(32)}`
const MERCHANT = idNumber(1)
const CREATOR = idNumber(2)
const STORE = idNumber(10)
const OFFER = idNumber(20)
const APPLICATION = idNumber(30)
const LINK = idNumber(40)

const user = (number: number, role: 'merchant' | 'creator' | 'admin') => ({
  id: idNumber(number),
  email: `${role}@example.pk`,
  password_hash: '$argon2id$x',
  role,
  display_name: role,
  created_at: AT,
})

const mail = (number: number, state: 'queued' | 'sent' | 'failed') => ({
  id: idNumber(number),
  user_id: MERCHANT,
  address: 'merchant@example.pk',
  kind: 'verify_email',
  facts: '{}',
  token_encrypted: state === 'queued' ? 'v2.z' : null,
  event_key: `verify_email ${number}`,
  state,
  attempts: 1,
  next_try_at: AT,
  lease_until: 0,
  last_error: state === 'failed' ? 'no such mailbox' : null,
  created_at: AT,
  give_up_at: AT + 1,
  finished_at: state === 'queued' ? null : AT,
})

const cycle = (number: number, state: 'open' | 'closed' | 'charged') => ({
  id: idNumber(number),
  merchant_id: MERCHANT,
  state,
  period_start: AT + number,
  period_end: AT + number + 1,
  sales_count: 1,
  commission_total: 10_000,
  fee_total: 1000,
  credit_total: 0,
  amount_due: state === 'open' ? 0 : 11_000,
  processor_invoice_id: state === 'open' ? null : `inv_${number}`,
  processor_payment_reference: state === 'charged' ? `pay_${number}` : null,
  created_at: AT,
  closed_at: state === 'open' ? null : AT,
  charged_at: state === 'charged' ? AT : null,
})

const payout = (number: number, state: 'pending' | 'submitted' | 'paid' | 'failed') => ({
  id: idNumber(number),
  creator_id: CREATOR,
  state,
  amount: 10_000,
  processor_payout_id: state === 'pending' ? null : `po_${number}`,
  failure_reason: state === 'failed' ? 'account closed' : null,
  created_at: AT,
  submitted_at: state === 'pending' ? null : AT,
  settled_at: state === 'paid' || state === 'failed' ? AT : null,
})

const sale = (number: number, cycleId: string | null) => ({
  id: idNumber(number),
  store_id: STORE,
  merchant_id: MERCHANT,
  order_id: `82098291194615${number}`,
  order_name: `#${number}`,
  acceptance_status: cycleId === null ? ('rejected' as const) : ('accepted' as const),
  rejection_reason: cycleId === null ? ('test_order' as const) : null,
  offer_id: OFFER,
  creator_id: CREATOR,
  link_id: LINK,
  click_id: idNumber(50),
  net_amount: 100_000,
  commission_rate: 1000,
  commission: cycleId === null ? 0 : 10_000,
  platform_fee: cycleId === null ? 0 : 1000,
  billing_cycle_id: cycleId,
  ordered_at: AT,
  created_at: AT,
  event_id: idNumber(90),
  receipt: '{}',
  buyer_name_matches: 0,
})

const event = (number: number, state: 'pending' | 'done' | 'ignored' | 'set_aside') => ({
  id: idNumber(number),
  source: 'store' as const,
  scope: STORE,
  delivery_id: `delivery-${number}`,
  conflict_hash: '',
  body_hash: 'ab'.repeat(32),
  topic: 'orders/paid',
  received_at: AT,
  state,
  attempts: 1,
  next_attempt_at: AT,
  lease_until: 0,
  finished_at: state === 'pending' ? null : AT,
})

const attempt = (number: number, state: 'waiting' | 'created' | 'refused') => ({
  id: idNumber(number),
  kind: 'payout' as const,
  subject_id: idNumber(number),
  amount: 10_000,
  request: '{}',
  state,
  tries: 1,
  next_try_at: AT,
  lease_until: 0,
  processor_id: state === 'created' ? `po_${number}` : null,
  created_at: AT,
  settled_at: state === 'waiting' ? null : AT,
})

/** At least one row of every table, with one of each state where states move; in an order in which they can be made. */
export const ONE_OF_EACH: Rows = {
  users: [user(1, 'merchant'), user(2, 'creator'), user(3, 'admin')],
  sessions: [
    {
      id: idNumber(4),
      user_id: MERCHANT,
      token_hash: 'cd',
      created_at: AT,
      expires_at: AT + 1,
      last_used_at: AT,
      address_prefix: '192.0.2.0/24',
      agent: 'curl/8.5.0',
      fresh_until: AT,
    },
  ],
  account_tokens: [
    { user_id: MERCHANT, purpose: 'verify_email', token_hash: 'ee', created_at: AT, expires_at: AT + 1 },
  ],
  mails: [mail(7, 'queued'), mail(8, 'sent'), mail(9, 'failed')],
  mail_opt_outs: [{ user_id: CREATOR, event: 'payout.paid', created_at: AT }],
  login_addresses: [{ user_id: MERCHANT, address_hash: 'ab', used_at: AT }],
  second_factors: [
    { user_id: MERCHANT, secret_encrypted: 'v2.z', created_at: AT, confirmed_at: AT, last_step: 1 },
  ],
  recovery_codes: [{ user_id: MERCHANT, code_hash: 'gh' }],
  payout_destinations: [
    {
      id: idNumber(5),
      user_id: CREATOR,
      iban_encrypted: 'v1.x',
      iban_fingerprint: 'ef',
      iban_last4: '6702',
      account_title: 'Creator',
      effective_at: AT,
      created_at: AT,
    },
  ],
  billing_accounts: [
    {
      id: idNumber(6),
      user_id: MERCHANT,
      kind: 'iban',
      account_encrypted: 'v2.x',
      account_last4: '6702',
      created_at: AT,
    },
  ],
  stores: [
    {
      id: STORE,
      merchant_id: MERCHANT,
      shop_domain: 'a.myshopify.com',
      created_at: AT,
      first_event_at: AT,
      connected_at: AT,
      last_refused_at: AT,
      last_refusal: 'wrong_signature',
      refused_since: AT,
      refused_count: 2,
      rejecting_sent_at: AT,
    },
    {
      id: idNumber(11),
      merchant_id: MERCHANT,
      shop_domain: 'a.myshopify.com',
      created_at: AT,
      removed_at: AT,
      released_at: AT,
      connected_at: AT,
      refused_count: 0,
    },
  ],
  store_hosts: [{ store_id: STORE, host: 'kurta.pk', created_at: AT }],
  store_days: [
    { store_id: STORE, day: 20_000, cart: 2, landing: 1, line: 0, coupon: 1, none: 3, last_event_at: AT },
  ],
  unclaimed_domains: [{ shop_domain: 'kurtta.myshopify.com', deliveries: 3, first_at: AT, last_at: AT }],
  store_secrets: [
    {
      id: idNumber(12),
      store_id: STORE,
      secret_encrypted: 'v1.y',
      fingerprint: '01',
      created_at: AT,
    },
  ],
  offers: [
    {
      id: OFFER,
      merchant_id: MERCHANT,
      title: 'چمڑے کی چپل',
      product_url: 'https://shop.example/p/1',
      category: 'shoes',
      niche: 'leather',
      commission_rate: 1000,
      status: 'live',
      status_count: 1,
      attribution_window_days: 30,
      product_ids: '["820982911946154508"]',
      created_at: AT,
      updated_at: AT,
    },
  ],
  applications: [
    {
      id: APPLICATION,
      offer_id: OFFER,
      merchant_id: MERCHANT,
      creator_id: CREATOR,
      status: 'approved',
      message: 'please',
      decided_at: AT,
      created_at: AT,
    },
  ],
  offer_status_changes: [{ offer_id: OFFER, sequence: 1, status: 'live', changed_at: AT }],
  affiliate_links: [
    {
      id: LINK,
      slug: 'abcdefgh',
      application_id: APPLICATION,
      offer_id: OFFER,
      merchant_id: MERCHANT,
      creator_id: CREATOR,
      commission_rate: 1000,
      attribution_window_days: 30,
      created_at: AT,
    },
  ],
  link_coupons: [
    { id: idNumber(41), link_id: LINK, merchant_id: MERCHANT, code: 'SANA10', starts_at: AT, ends_at: null },
  ],
  clicks: [
    {
      id: idNumber(50),
      link_id: LINK,
      tracked: 1,
      kind: 'visit',
      repeated: 0,
      created_at: AT,
      sub_id: 'reel',
    },
  ],
  click_days: [{ link_id: LINK, sub_id: '', day: 20_000, visits: 1, unique_visits: 1 }],
  click_counts: [{ link_id: LINK, clicks: 1, unique_clicks: 1 }],
  counted_visitors: [{ link_id: LINK, visitor: 'x', counted_at: AT }],
  uncounted_clicks: [
    {
      id: idNumber(51),
      slot: 1_920_000,
      sub_id: '',
      link_id: LINK,
      visits: 1,
      unique_visits: 1,
      clicks: 1,
      untracked_visits: 0,
    },
  ],
  billing_cycles: [cycle(60, 'charged'), cycle(61, 'closed'), cycle(62, 'open')],
  billing_cycle_shares: [
    {
      billing_cycle_id: idNumber(60),
      creator_id: CREATOR,
      sales_count: 1,
      commission: 10_000,
      released_at: AT,
      carried: 10_000,
    },
  ],
  credits: [
    {
      id: idNumber(63),
      merchant_id: MERCHANT,
      amount: 500,
      reference: 'C-1',
      reason: 'refund',
      created_at: AT,
    },
  ],
  sales: [
    sale(64, idNumber(60)),
    sale(65, null),
    { ...sale(66, null), rejection_reason: 'not_paid' as const },
    { ...sale(67, null), decided_at: AT },
  ],
  sale_decisions: [{ sale_id: idNumber(67), event_id: idNumber(91), decided_at: AT, receipt: '{}' }],
  payouts: [payout(70, 'pending'), payout(71, 'submitted'), payout(72, 'paid'), payout(73, 'failed')],
  payout_lines: [
    { payout_id: idNumber(72), billing_cycle_id: idNumber(60), merchant_id: MERCHANT, amount: 10_000 },
  ],
  ledger_entries: [
    {
      id: idNumber(80),
      kind: 'sale_accepted',
      subject_id: idNumber(64),
      created_at: AT,
      ledger_id: MERCHANT,
      sequence: 1,
      hash: `${KEY}.${'ab'.repeat(32)}`,
    },
  ],
  ledger_heads: [{ ledger_id: MERCHANT, sequence: 1, hash: `${KEY}.${'ab'.repeat(32)}` }],
  ledger_seals: [{ position: 1, sealed_at: AT, digest: `${KEY}.${'cd'.repeat(32)}` }],
  ledger_seal_heads: [{ position: 1, ledger_id: MERCHANT, sequence: 1, hash: `${KEY}.${'ab'.repeat(32)}` }],
  ledger_postings: [
    { entry_id: idNumber(80), line: 1, account: 'merchant_unbilled', owner_id: MERCHANT, amount: 11_000 },
    { entry_id: idNumber(80), line: 2, account: 'creator_pending', owner_id: CREATOR, amount: -10_000 },
    { entry_id: idNumber(80), line: 3, account: 'platform_fees', owner_id: NIL_ID, amount: -1000 },
  ],
  inbound_events: [event(90, 'done'), event(91, 'pending'), event(92, 'ignored'), event(93, 'set_aside')],
  inbound_bodies: [{ event_id: idNumber(90), encoding: 'utf8', body: '{"id":1}' }],
  operator_deliveries: [
    { scope: STORE, delivery_id: 'sent by hand', body_hash: 'ef'.repeat(32), created_at: AT },
  ],
  processor_attempts: [attempt(100, 'waiting'), attempt(101, 'created'), attempt(102, 'refused')],
  flags: [
    {
      id: idNumber(110),
      kind: 'unpaid_cycle',
      severity: 'high',
      subject_type: 'billing_cycle',
      subject_id: idNumber(61),
      summary: 'unpaid',
      evidence: '{}',
      status: 'open',
      created_at: AT,
    },
  ],
  audit_entries: [
    {
      id: idNumber(120),
      actor: 'operator',
      action: 'credit',
      subject_type: 'user',
      subject_id: MERCHANT,
      reason: 'refund',
      after: '{}',
      created_at: AT,
    },
  ],
  export_jobs: [
    {
      id: idNumber(130),
      user_id: MERCHANT,
      role: 'merchant',
      resource: 'sales',
      format: 'csv',
      to_at: AT,
      state: 'succeeded',
      due_at: AT,
      attempts: 1,
      rows_total: 2,
      rows_done: 2,
      file_key: 'sales.csv',
      created_at: AT,
      finished_at: AT,
      expires_at: AT + 1,
    },
  ],
  outbox_events: [
    {
      id: idNumber(140),
      type: 'sale.accepted',
      account_id: MERCHANT,
      subject_id: idNumber(80),
      sequence: 1,
      data: '{}',
      created_at: AT,
      distributed_at: AT,
    },
    {
      id: idNumber(141),
      type: 'sale.accepted',
      account_id: CREATOR,
      subject_id: idNumber(80),
      sequence: 1,
      data: '{}',
      created_at: AT,
    },
  ],
  webhook_endpoints: [
    {
      id: idNumber(142),
      account_id: MERCHANT,
      url: 'https://merchant.example.pk/hooks',
      description: '',
      events: '["sale.accepted"]',
      created_at: AT,
      updated_at: AT,
    },
  ],
  webhook_secrets: [
    {
      id: idNumber(143),
      endpoint_id: idNumber(142),
      secret_encrypted: 'v2.x',
      created_at: AT,
    },
  ],
  webhook_deliveries: [
    {
      id: idNumber(144),
      endpoint_id: idNumber(142),
      event_id: idNumber(140),
      subject_id: idNumber(80),
      sequence: 1,
      state: 'delivered',
      attempts: 1,
      due_at: AT,
      lease_until: 0,
      attempted_at: AT,
      response_status: 204,
      response_body: '',
      attempt_log: JSON.stringify([{ at: AT, status: 204, error: null, durationMs: 1 }]),
      created_at: AT,
      finished_at: AT,
    },
  ],
  link_days: [{ link_id: LINK, day: 20_000, visits: 1, clicks: 1, untracked_visits: 0 }],
  mailboxes: [{ user_id: CREATOR, fingerprint: '23' }],
  schedule_runs: [{ name: 'billing', started_at: AT, finished_at: AT, outcome: '{}' }],
  processes: [{ id: idNumber(90), host: 'host-1', pid: 1, roles: 'web', money_settings: '{}', seen_at: AT }],
  rate_limits: [{ key: 'auth:x', points: 1, expire: AT }],
  watermarks: [{ name: 'clicks', value: NIL_ID }],
}

/**
 * Puts one of each into the tables that are empty, at any stage of a database's migrations: tables and columns that are
 * not there yet are left out.
 */
export async function populate({ writer }: OpenDatabase): Promise<void> {
  const tables = new Map((await writer.introspection.getTables()).map((table) => [table.name, table.columns]))
  for (const [name, rows] of Object.entries(ONE_OF_EACH)) {
    const columns = (tables.get(name) ?? []).map((column) => column.name)
    if (columns.length === 0) continue
    if ((await sql`select 1 from ${sql.table(name)} limit 1`.execute(writer)).rows.length > 0) continue
    for (const row of rows) {
      const cells = Object.entries({ row_digest: DIGEST, ...row }).filter(([column]) =>
        columns.includes(column),
      )
      await sql`insert into ${sql.table(name)} (${sql.join(cells.map(([column]) => sql.ref(column)))})
        values (${sql.join(cells.map(([, value]) => value))})`.execute(writer)
    }
  }
}
