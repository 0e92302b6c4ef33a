import { type Insertable, sql } from 'kysely'
import type { OpenDatabase } from '../../platform/database/open-database.ts'
import type { Schema } from '../../platform/database/schema.ts'
import { NIL_ID } from '../../platform/ids.ts'

type Rows = { [Table in keyof Schema]: Partial<Insertable<Schema[Table]>>[] }

/** A recognizable UUIDv7. */
export function idNumber(number: number): string {
  return `01900000-0000-7000-8000-${String(number).padStart(12, '0')}`
}

const AT = 1_790_000_000_000
/** The id of a key that journal rows name. */
const KEY = 'ab12cd34'
const HASH = `${KEY}.${'ab'.repeat(32)}`
const MERCHANT = idNumber(1)
const CREATOR = idNumber(2)
const STORE = idNumber(10)
const OFFER = idNumber(20)
const APPLICATION = idNumber(30)
const LINK = idNumber(40)

/** What a column has that must not be null, where its row says nothing else; so has each time `AT`. */
const USUAL: Readonly<Record<string, unknown>> = {
  merchant_id: MERCHANT,
  user_id: MERCHANT,
  account_id: MERCHANT,
  ledger_id: MERCHANT,
  creator_id: CREATOR,
  store_id: STORE,
  scope: STORE,
  offer_id: OFFER,
  link_id: LINK,
  amount: 10_000,
  commission: 10_000,
  commission_rate: 1000,
  attribution_window_days: 30,
  sales_count: 1,
  day: 20_000,
  sequence: 1,
  position: 1,
  attempts: 1,
  tries: 1,
  next_attempt_at: AT,
  lease_until: 0,
  hash: HASH,
  /** Of a row, made with that key. */
  row_digest: `${KEY}.${'ef'.repeat(32)}`,
  reason: 'refund',
  ...{ visits: 1, unique_visits: 1, clicks: 1, unique_clicks: 1, untracked_visits: 0, sub_id: '' },
  ...{ facts: '{}', receipt: '{}', request: '{}', evidence: '{}', data: '{}', outcome: '{}' },
  money_settings: '{}',
}

const user = (number: number, role: 'merchant' | 'creator' | 'admin') => ({
  ...{ id: idNumber(number), role, display_name: role },
  ...{ email: `${role}@example.pk`, password_hash: '$argon2id$x' },
})

const mail = (number: number, state: 'queued' | 'sent' | 'failed') => ({
  ...{ id: idNumber(number), address: 'merchant@example.pk', kind: 'verify_email', state },
  token_encrypted: state === 'queued' ? 'v2.z' : null,
  event_key: `verify_email ${number}`,
  last_error: state === 'failed' ? 'no such mailbox' : null,
  give_up_at: AT + 1,
  finished_at: state === 'queued' ? null : AT,
})

const cycle = (number: number, state: 'open' | 'closed' | 'charged') => ({
  ...{ id: idNumber(number), state, period_start: AT + number, period_end: AT + number + 1 },
  ...{ commission_total: 10_000, fee_total: 1000, credit_total: 0 },
  amount_due: state === 'open' ? 0 : 11_000,
  processor_invoice_id: state === 'open' ? null : `inv_${number}`,
  processor_payment_reference: state === 'charged' ? `pay_${number}` : null,
  closed_at: state === 'open' ? null : AT,
  charged_at: state === 'charged' ? AT : null,
})

const payout = (number: number, state: 'pending' | 'submitted' | 'paid' | 'failed') => ({
  ...{ id: idNumber(number), state },
  processor_payout_id: state === 'pending' ? null : `po_${number}`,
  failure_reason: state === 'failed' ? 'account closed' : null,
  submitted_at: state === 'pending' ? null : AT,
  settled_at: state === 'paid' || state === 'failed' ? AT : null,
})

const sale = (number: number, cycleId: string | null) => ({
  ...{ id: idNumber(number), order_id: `82098291194615${number}`, order_name: `#${number}` },
  acceptance_status: cycleId === null ? ('rejected' as const) : ('accepted' as const),
  rejection_reason: cycleId === null ? ('test_order' as const) : null,
  ...{ offer_id: OFFER, creator_id: CREATOR, link_id: LINK, click_id: idNumber(50), commission_rate: 1000 },
  net_amount: 100_000,
  commission: cycleId === null ? 0 : 10_000,
  platform_fee: cycleId === null ? 0 : 1000,
  billing_cycle_id: cycleId,
  ...{ event_id: idNumber(90), buyer_name_matches: 0 },
})

const pendingOrder = (number: number, state: 'pending' | 'expired' | 'cancelled' | 'became_sale') => ({
  ...{ id: idNumber(number), order_id: `8209829119461${number}`, order_name: `#${number}`, version: '1' },
  ...{ state, expected_commission: 10_000, sale_id: state === 'became_sale' ? idNumber(64) : null },
})

const event = (number: number, state: 'pending' | 'done' | 'ignored' | 'set_aside') => ({
  ...{ id: idNumber(number), source: 'store' as const, delivery_id: `delivery-${number}`, conflict_hash: '' },
  ...{ body_hash: 'ab'.repeat(32), topic: 'orders/paid', state },
  finished_at: state === 'pending' ? null : AT,
})

const attempt = (number: number, state: 'waiting' | 'created' | 'refused') => ({
  ...{ id: idNumber(number), kind: 'payout' as const, subject_id: idNumber(number), state },
  processor_id: state === 'created' ? `po_${number}` : null,
  settled_at: state === 'waiting' ? null : AT,
})

const transfer = (number: number, state: 'open' | 'paid' | 'failed') => ({
  ...{ id: idNumber(number), kind: 'payout' as const, subject_id: idNumber(number), state },
  ...{ number: `PAY${number}`, file: 'PFABCDEFGH', exported_at: AT },
  bank_reference: state === 'paid' ? `FT${number}` : null,
  reason: state === 'failed' ? 'account closed' : null,
  confirmed_by: state === 'open' ? null : idNumber(3),
  settled_at: state === 'open' ? null : AT,
})

/** At least one row of every table, with one of each state where states move; in an order in which they can be made. */
export const ONE_OF_EACH: Rows = {
  users: [user(1, 'merchant'), user(2, 'creator'), user(3, 'admin')],
  sessions: [
    {
      ...{ id: idNumber(4), token_hash: 'cd', expires_at: AT + 1, last_used_at: AT, fresh_until: AT },
      ...{ address_prefix: '192.0.2.0/24', agent: 'curl/8.5.0' },
    },
  ],
  api_keys: [
    {
      ...{ id: idNumber(150), name: 'Order desk', scope: 'read', token_hash: 'ff', last4: 'w8Zk' },
      ...{ expires_at: AT + 1, last_used_at: AT },
    },
  ],
  account_tokens: [{ purpose: 'verify_email', token_hash: 'ee', expires_at: AT + 1 }],
  mails: [mail(7, 'queued'), mail(8, 'sent'), mail(9, 'failed')],
  mail_opt_outs: [{ user_id: CREATOR, event: 'payout.paid' }],
  login_addresses: [{ address_hash: 'ab' }],
  second_factors: [{ secret_encrypted: 'v2.z', confirmed_at: AT, last_step: 1 }],
  recovery_codes: [{ code_hash: 'gh' }],
  payout_destinations: [
    {
      ...{ id: idNumber(5), user_id: CREATOR, iban_encrypted: 'v1.x', iban_fingerprint: 'ef' },
      ...{ iban_last4: '6702', account_title: 'Creator' },
    },
  ],
  billing_accounts: [{ id: idNumber(6), kind: 'iban', account_encrypted: 'v2.x', account_last4: '6702' }],
  stores: [
    {
      ...{ id: STORE, shop_domain: 'a.myshopify.com', first_event_at: AT, connected_at: AT },
      ...{ rejecting_sent_at: AT },
      ...{ last_refused_at: AT, last_refusal: 'wrong_signature', refused_since: AT, refused_count: 2 },
    },
    {
      ...{ id: idNumber(11), shop_domain: 'a.myshopify.com', connected_at: AT, refused_count: 0 },
      ...{ removed_at: AT, released_at: AT },
    },
  ],
  store_days: [{ cart: 2, landing: 1, line: 0, coupon: 1, none: 3, paid_events: 8, other_events: 1 }],
  unclaimed_domains: [{ shop_domain: 'kurtta.myshopify.com', deliveries: 3 }],
  store_secrets: [{ id: idNumber(12), secret_encrypted: 'v1.y', fingerprint: '01' }],
  offers: [
    {
      ...{ id: OFFER, title: 'چمڑے کی چپل', product_url: 'https://shop.example/p/1', category: 'shoes' },
      ...{ niche: 'leather', status: 'live', status_count: 1, product_ids: '["820982911946154508"]' },
    },
  ],
  applications: [{ id: APPLICATION, status: 'approved', message: 'please', decided_at: AT }],
  offer_status_changes: [{ status: 'live' }],
  affiliate_links: [{ id: LINK, slug: 'abcdefgh', application_id: APPLICATION }],
  link_coupons: [{ id: idNumber(41), code: 'SANA10', ends_at: null }],
  clicks: [{ id: idNumber(50), tracked: 1, kind: 'visit', repeated: 0, sub_id: 'reel' }],
  click_days: [{}],
  click_counts: [{}],
  counted_visitors: [{ visitor: 'x' }],
  uncounted_clicks: [{ id: idNumber(51), slot: 1_920_000 }],
  billing_cycles: [cycle(60, 'charged'), cycle(61, 'closed'), cycle(62, 'open')],
  billing_cycle_shares: [{ billing_cycle_id: idNumber(60), released_at: AT, carried: 10_000 }],
  credits: [{ id: idNumber(63), amount: 500, reference: 'C-1' }],
  sales: [
    sale(64, idNumber(60)),
    sale(65, null),
    { ...sale(66, null), rejection_reason: 'not_paid' as const },
    { ...sale(67, null), decided_at: AT },
  ],
  pending_orders: [
    pendingOrder(68, 'pending'),
    pendingOrder(69, 'expired'),
    pendingOrder(166, 'cancelled'),
    pendingOrder(167, 'became_sale'),
  ],
  sale_decisions: [{ sale_id: idNumber(67), event_id: idNumber(91) }],
  payouts: [payout(70, 'pending'), payout(71, 'submitted'), payout(72, 'paid'), payout(73, 'failed')],
  payout_lines: [{ payout_id: idNumber(72), billing_cycle_id: idNumber(60) }],
  ledger_entries: [{ id: idNumber(80), kind: 'sale_accepted', subject_id: idNumber(64) }],
  ledger_heads: [{}],
  ledger_seals: [{ digest: `${KEY}.${'cd'.repeat(32)}` }],
  ledger_seal_heads: [{}],
  ledger_postings: [
    { entry_id: idNumber(80), line: 1, account: 'merchant_unbilled', owner_id: MERCHANT, amount: 11_000 },
    { entry_id: idNumber(80), line: 2, account: 'creator_pending', owner_id: CREATOR, amount: -10_000 },
    { entry_id: idNumber(80), line: 3, account: 'platform_fees', owner_id: NIL_ID, amount: -1000 },
  ],
  inbound_events: [event(90, 'done'), event(91, 'pending'), event(92, 'ignored'), event(93, 'set_aside')],
  inbound_bodies: [{ event_id: idNumber(90), encoding: 'utf8', body: '{"id":1}' }],
  operator_deliveries: [{ delivery_id: 'sent by hand', body_hash: 'ef'.repeat(32) }],
  processor_attempts: [attempt(100, 'waiting'), attempt(101, 'created'), attempt(102, 'refused')],
  manual_transfers: [transfer(103, 'open'), transfer(104, 'paid'), transfer(105, 'failed')],
  flags: [
    {
      ...{ id: idNumber(110), kind: 'unpaid_cycle', severity: 'high', subject_type: 'billing_cycle' },
      ...{ subject_id: idNumber(61), summary: 'unpaid', status: 'open' },
    },
  ],
  audit_entries: [
    {
      ...{ id: idNumber(120), actor: 'operator', action: 'credit', reason: 'refund', after: '{}' },
      ...{ subject_type: 'user', subject_id: MERCHANT },
    },
  ],
  export_jobs: [
    {
      ...{ id: idNumber(130), role: 'merchant', resource: 'sales', format: 'csv', to_at: AT },
      ...{ state: 'succeeded', rows_total: 2, rows_done: 2, file_key: 'sales.csv' },
      ...{ finished_at: AT, expires_at: AT + 1 },
    },
  ],
  outbox_events: [
    { id: idNumber(140), type: 'sale.accepted', subject_id: idNumber(80), distributed_at: AT },
    { id: idNumber(141), type: 'sale.accepted', account_id: CREATOR, subject_id: idNumber(80) },
  ],
  webhook_endpoints: [
    {
      ...{ id: idNumber(142), url: 'https://merchant.example.pk/hooks', description: '' },
      events: '["sale.accepted"]',
    },
  ],
  webhook_secrets: [{ id: idNumber(143), endpoint_id: idNumber(142), secret_encrypted: 'v2.x' }],
  webhook_deliveries: [
    {
      ...{ id: idNumber(144), endpoint_id: idNumber(142), event_id: idNumber(140), subject_id: idNumber(80) },
      ...{ state: 'delivered', attempted_at: AT, response_status: 204, response_body: '', finished_at: AT },
      attempt_log: JSON.stringify([{ at: AT, status: 204, error: null, durationMs: 1 }]),
    },
  ],
  link_days: [{}],
  mailboxes: [{ user_id: CREATOR, fingerprint: '23' }],
  schedule_runs: [{ name: 'billing', finished_at: AT, outcome: '{}' }],
  processes: [{ id: idNumber(90), host: 'host-1', pid: 1, roles: 'web' }],
  idempotency_keys: [{ id: idNumber(151), key: 'draft-1', answer_encrypted: 'v2.y' }],
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
    const columns = tables.get(name) ?? []
    if (columns.length === 0) continue
    if ((await sql`select 1 from ${sql.table(name)} limit 1`.execute(writer)).rows.length > 0) continue
    for (const row of rows) {
      const cells = columns.flatMap(({ name: column, isNullable, hasDefaultValue }) => {
        const usual = USUAL[column] ?? (column.endsWith('_at') ? AT : undefined)
        const given =
          (row as Record<string, unknown>)[column] ?? (isNullable || hasDefaultValue ? undefined : usual)
        return given === undefined ? [] : [[column, given] as const]
      })
      await sql`insert into ${sql.table(name)} (${sql.join(cells.map(([column]) => sql.ref(column)))})
        values (${sql.join(cells.map(([, value]) => value))})`.execute(writer)
    }
  }
}
