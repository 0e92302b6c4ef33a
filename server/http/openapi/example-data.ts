import type { z } from 'zod'
import type { creditRequest, FlagWire } from '../../../shared/schemas/admin.ts'
import type { Application } from '../../../shared/schemas/applications.ts'
import type { BillingCycleWire } from '../../../shared/schemas/billing.ts'
import type { Job } from '../../../shared/schemas/jobs.ts'
import type { AffiliateLink, ResolvedLink } from '../../../shared/schemas/links.ts'
import type { Offer } from '../../../shared/schemas/offers.ts'
import type { PayoutWire } from '../../../shared/schemas/payouts.ts'
import type { Sale, SaleWithReceipt } from '../../../shared/schemas/sales.ts'
import type { Store } from '../../../shared/schemas/stores.ts'
import type { CreatorSummaryWire, MerchantSummaryWire } from '../../../shared/schemas/summaries.ts'
import type { openSession as openSessionSchema, session, UserWire } from '../../../shared/schemas/users.ts'
import type {
  WebhookDelivery,
  WebhookEndpoint,
  WebhookEndpointWithSecret,
} from '../../../shared/schemas/webhooks.ts'

/**
 * The examples of the API reference. They tell one story: Chenab Lawn sells a lawn suit, Sana Mirza promotes it, and one order
 * of 18 November 2026 goes from the click to the paid payout. A test checks each against its schema, and their sums.
 */
const BASE = 'https://market.example.pk'
export const ID = {
  merchant: '01a10ab1-68e6-79e7-86cc-e0d95f0f6089',
  store: '01a10ab8-3992-7824-980d-71985f082a26',
  offer: '01a10ac3-03f0-7988-980b-f0c9328c9e8b',
  creator: '01a11186-b377-7bc6-bfd8-48ebd7819c9a',
  application: '01a11197-e3fd-71fe-a892-05936c3fdb61',
  link: '01a114e7-fe46-7b1b-9bdb-480c61d07530',
  cycle: '01a195f6-d55d-7c50-9935-a6b2b247d007',
  click: '01a1ef2d-fe28-7e5c-bffa-c26fed654fe6',
  sale: '01a1ef88-8a61-71f7-901f-e71011ba0872',
  flag: '01a1f813-f463-7807-90fb-cae7c4b20518',
  request: '01a1fc82-f0ce-71f5-8b91-45b24d108d7a',
  job: '01a1fc82-f0c7-75e8-8990-2207afaeb712',
  credit: '01a202b8-2292-7ecc-8873-a1694eb0de0b',
  payout: '01a23624-a360-704d-84f3-db0e1d5ced70',
  endpoint: '01a10ad8-5f58-7a1e-8c44-5b6d9f20c3a1',
  event: '01a1ef88-8a64-7d0b-9a37-21f4c86e0b52',
  delivery: '01a1ef88-8af6-7f35-b1d9-4e7702ac9d18',
  session: '01a11186-b381-7d04-9c1f-62a7e05b3f18',
}
export const SLUG = 'k7m2xq9wpd'
export const PRODUCT_ID = '8123456789012'
const CLICKED_AT = '2026-11-18T15:02:11.240Z'
const ORDERED_AT = '2026-11-18T16:40:00.000Z'
const DECIDED_AT = '2026-11-18T16:41:05.377Z'
const TERMS_LOCKED_AT = '2026-10-07T05:48:30.662Z'
const PERIOD = { period_start: '2026-10-31T19:00:00.000Z', period_end: '2026-11-30T19:00:00.000Z' }
const MONTH = { from: '2026-10-31T19:00:00.000Z', to: '2026-11-30T19:00:00.000Z' }
const CLOSED_AT = '2026-11-30T19:05:00.214Z'
const CHARGED_AT = '2026-12-02T09:41:27.905Z'
const PAID_AT = '2026-12-02T11:20:48.066Z'

const merchant = { id: ID.merchant, display_name: 'Chenab Lawn' }
const creator = { id: ID.creator, display_name: 'Sana Mirza' }

export const offer: Offer = {
  id: ID.offer,
  merchant,
  title: 'Embroidered Lawn Suit, 3 Piece',
  description: 'Unstitched lawn with a chiffon dupatta. Delivery all over Pakistan in 3 to 5 days.',
  product_url: 'https://chenab-lawn.example.pk/products/embroidered-lawn-suit',
  image_url: 'https://chenab-lawn.example.pk/images/embroidered-lawn-suit.jpg',
  category: 'Fashion',
  niche: 'Lawn',
  commission_rate: 12.5,
  status: 'live',
  vetting: 'not_required',
  vetting_reason: null,
  attribution_window_days: 30,
  product_ids: [PRODUCT_ID],
  created_at: '2026-10-05T06:31:55.120Z',
  updated_at: '2026-10-05T06:34:10.882Z',
}

const link = { slug: SLUG, url: `${BASE}/go/${SLUG}` }
const linkedOffer = {
  id: offer.id,
  title: offer.title,
  category: offer.category,
  niche: offer.niche,
  status: offer.status,
  merchant,
}

const application: Application = {
  id: ID.application,
  offer_id: ID.offer,
  creator,
  status: 'approved',
  message: 'I review lawn collections for 48,000 followers and would show this suit before Eid.',
  promotion_url: 'https://reels.example.pk/sana.mirza',
  locked_commission_rate: 12.5,
  affiliate_link: { ...link, coupon_code: 'SANA10' },
  decision_reason: null,
  decided_at: TERMS_LOCKED_AT,
  created_at: '2026-10-06T14:22:09.405Z',
}

export const sale: Sale = {
  id: ID.sale,
  acceptance_status: 'accepted',
  rejection_reason: null,
  attributed_by: 'click',
  offer_id: ID.offer,
  creator_id: ID.creator,
  affiliate_link_slug: SLUG,
  store_id: ID.store,
  order_id: '6145939901377',
  order_name: '#1001',
  net_amount: '9000.00',
  commission_rate: 12.5,
  commission: '1125.00',
  platform_fee: '112.50',
  currency: 'PKR',
  billing_cycle_id: ID.cycle,
  ordered_at: ORDERED_AT,
  created_at: DECIDED_AT,
  decided_at: DECIDED_AT,
}

export const billingCycle: BillingCycleWire = {
  id: ID.cycle,
  state: 'charged',
  ...PERIOD,
  commission_total: '18450.00',
  fee_total: '1845.00',
  credit_total: '500.00',
  amount_due: '19795.00',
  currency: 'PKR',
  processor_invoice_id: 'inv_7Q2mX4kdR9',
  processor_payment_reference: 'pay_4Hs81LwzT0',
  payment_url: 'https://pay.example.pk/inv_7Q2mX4kdR9',
  closed_at: CLOSED_AT,
  charged_at: CHARGED_AT,
}

const webhookEndpoint: WebhookEndpoint = {
  id: ID.endpoint,
  url: 'https://chenab-lawn.example.pk/affiliate-events',
  description: 'Order desk',
  events: ['sale.accepted', 'billing_cycle.closed'],
  enabled: true,
  disabled_reason: null,
  failing_since: null,
  former_secret_valid_until: null,
  created_at: '2026-10-05T07:02:31.448Z',
  updated_at: '2026-10-05T07:02:31.448Z',
}

const webhookDelivery: WebhookDelivery = {
  id: ID.delivery,
  endpoint_id: ID.endpoint,
  event_id: ID.event,
  event_type: 'sale.accepted',
  state: 'delivered',
  attempts: 1,
  next_attempt_at: null,
  last_attempt_at: '2026-11-18T16:41:05.812Z',
  response_status: 204,
  response_body: '',
  error: null,
  attempt_log: [{ at: '2026-11-18T16:41:05.812Z', response_status: 204, error: null, duration_ms: 187 }],
  created_at: '2026-11-18T16:41:05.590Z',
  finished_at: '2026-11-18T16:41:05.812Z',
}

const queuedDelivery: WebhookDelivery = {
  ...webhookDelivery,
  state: 'pending',
  attempts: 0,
  next_attempt_at: webhookDelivery.created_at,
  last_attempt_at: null,
  response_status: null,
  response_body: null,
  attempt_log: [],
  finished_at: null,
}

export const payout: PayoutWire = {
  id: ID.payout,
  state: 'paid',
  amount: '4375.00',
  currency: 'PKR',
  processor_payout_id: 'po_9Vb3NcY6eK',
  failure_reason: null,
  created_at: '2026-12-02T09:45:00.512Z',
  settled_at: PAID_AT,
}

const saleWithReceipt: SaleWithReceipt = {
  ...sale,
  merchant,
  creator,
  offer: { id: offer.id, title: offer.title },
  receipt: {
    rule_version: 3,
    attributed_by: 'click',
    tracked_by: 'landing',
    coupons: [],
    clicked_link_slug: SLUG,
    checks: [
      {
        name: 'not_paid',
        verdict: 'passed',
        saw: { financial_status: 'paid', cancelled: false },
      },
      {
        name: 'unknown_tracking_reference',
        verdict: 'passed',
        saw: { tracking_source: 'landing_site', tracking_reference: ID.click },
      },
      {
        name: 'outside_attribution_window',
        verdict: 'passed',
        saw: {
          clicked_at: CLICKED_AT,
          ordered_at: ORDERED_AT,
          attribution_window_days: 30,
          window_ends_at: '2026-12-18T15:02:11.240Z',
        },
      },
      {
        name: 'nothing_payable',
        verdict: 'passed',
        saw: { net_amount: sale.net_amount, commission: sale.commission },
      },
    ],
    lines: [
      {
        title: offer.title,
        product_id: PRODUCT_ID,
        quantity: 2,
        unit_price: '4999.00',
        gross: '9998.00',
        discount: '998.00',
        tax: '0.00',
        net: '9000.00',
        counted: true,
        why_not: null,
      },
      {
        title: 'Gift card',
        product_id: '8123456789555',
        quantity: 1,
        unit_price: '2000.00',
        gross: '2000.00',
        discount: '0.00',
        tax: '0.00',
        net: '2000.00',
        counted: false,
        why_not: 'gift_card',
      },
    ],
    lines_left_out: 0,
    net_amount: sale.net_amount,
    commission_rate: sale.commission_rate,
    commission: sale.commission,
    platform_fee_rate: 10,
    platform_fee: '112.50',
    clicked_at: CLICKED_AT,
    terms_locked_at: TERMS_LOCKED_AT,
    attribution_window_days: 30,
    product_ids: [PRODUCT_ID],
  },
  former_decisions: [],
  outcome: {
    billing_cycle: {
      id: ID.cycle,
      state: 'charged',
      ...PERIOD,
      closed_at: CLOSED_AT,
      charged_at: CHARGED_AT,
      creator_share: payout.amount,
      amount_due: billingCycle.amount_due,
      credit_total: billingCycle.credit_total,
      processor_invoice_id: billingCycle.processor_invoice_id,
      processor_payment_reference: billingCycle.processor_payment_reference,
    },
    payouts: [
      {
        id: ID.payout,
        state: 'paid',
        share: payout.amount,
        replaces_payout_id: null,
        created_at: payout.created_at,
        settled_at: PAID_AT,
      },
    ],
  },
}

const resolvedLink: ResolvedLink = { ...link, active: true, creator, offer: linkedOffer }

const affiliateLink: AffiliateLink = {
  id: ID.link,
  ...link,
  active: true,
  coupon_code: 'SANA10',
  offer: linkedOffer,
  product_host: 'chenab-lawn.example.pk',
  commission_rate: 12.5,
  attribution_window_days: 30,
  product_ids: [PRODUCT_ID],
  clicks: 371,
  unique_clicks: 322,
  accepted_sales: 7,
  commission_earned: '6625.00',
  currency: 'PKR',
  created_at: TERMS_LOCKED_AT,
}

export const store: Store = {
  id: ID.store,
  platform: 'shopify',
  shop_domain: 'chenab-lawn.myshopify.com',
  status: 'receiving',
  webhook_url: `${BASE}/webhooks/store-sales`,
  script_url: `${BASE}/store.js`,
  script_tag: `<script src="${BASE}/store.js" async></script>`,
  last_event_at: '2026-11-20T17:31:02.118Z',
  last_refused_at: null,
  last_refusal: null,
  unreadable_7d: 0,
  tracked_30d: { cart: 61, landing: 9, line: 14, coupon: 27, none: 218 },
  created_at: '2026-10-05T06:20:07.954Z',
}

const creatorAccount: UserWire = {
  id: ID.creator,
  email: 'sana@reels.example.pk',
  role: 'creator',
  display_name: creator.display_name,
  suspended: false,
  created_at: '2026-10-06T14:03:22.871Z',
  email_verified_at: '2026-10-01T08:20:00.000Z',
  second_factor: false,
  payout_destination: { iban_last4: '6702', account_title: 'SANA MIRZA' },
  upcoming_payout_destination: null,
  balance: {
    pending: '2250.00',
    released: '640.00',
    in_transit: '0.00',
    paid: '4375.00',
    payout_threshold: '1000.00',
    currency: 'PKR',
  },
}

const merchantAccount: UserWire = {
  id: ID.merchant,
  email: 'owner@chenab-lawn.example.pk',
  role: 'merchant',
  display_name: merchant.display_name,
  suspended: false,
  created_at: '2026-10-05T06:12:41.318Z',
  email_verified_at: '2026-10-01T08:20:00.000Z',
  second_factor: false,
  account: { open_cycle_due: '2475.00', unpaid: '0.00', credit_available: '0.00', currency: 'PKR' },
  billing_account: { kind: 'raast_id', last4: '4567' },
}

const openSession: z.output<typeof openSessionSchema> = {
  id: ID.session,
  created_at: '2026-11-18T14:55:31.702Z',
  expires_at: '2026-12-18T14:55:31.702Z',
  last_used_at: '2026-11-20T09:12:05.118Z',
  address_prefix: '203.0.113.0/24',
  agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  current: true,
}

const newSession: z.output<typeof session> = {
  user: {
    ...creatorAccount,
    payout_destination: null,
    balance: {
      pending: '0.00',
      released: '0.00',
      in_transit: '0.00',
      paid: '0.00',
      payout_threshold: '1000.00',
      currency: 'PKR',
    },
  },
  token: 'oWElGon8kaJtGxgXOOmCZ07ULvwOFZj4bjXRMUueoLA',
  expires_at: '2026-11-05T14:03:22.871Z',
}

const flag: FlagWire = {
  id: ID.flag,
  kind: 'self_purchase',
  severity: 'medium',
  subject_type: 'user',
  subject_id: ID.creator,
  summary: 'Creator bought through their own link 2 times in 30 days.',
  evidence: { self_purchases: 2, within_days: 30 },
  status: 'open',
  note: null,
  created_at: '2026-11-20T08:30:19.747Z',
  resolved_at: null,
}

const RESOLUTION = 'Orders for family, agreed with the merchant.'

const job: Job = {
  id: ID.job,
  kind: 'export',
  state: 'succeeded',
  progress: 1,
  rows: 1250,
  error: null,
  created_at: '2026-11-21T05:10:02.183Z',
  finished_at: '2026-11-21T05:10:04.920Z',
  expires_at: '2026-11-28T05:10:04.920Z',
  download_url: `${BASE}/jobs/${ID.job}/file`,
}

const credit: z.output<typeof creditRequest> = {
  flag_id: ID.credit,
  sale_id: ID.sale,
  amount: '1237.50',
  currency: 'PKR',
  reason: 'The customer returned both suits.',
  status: 'pending',
  created_at: '2026-11-22T10:05:51.634Z',
}

const creatorSummary: CreatorSummaryWire = {
  role: 'creator',
  clicks: 412,
  unique_clicks: 358,
  sales: {
    ...MONTH,
    accepted: 5,
    attributed_by: { coupon: 1, click: 4 },
    commission: '4375.00',
    rejected: 1,
    rejected_by_reason: [{ reason: 'not_paid', sales: 1 }],
  },
  pending: '2250.00',
  released: '640.00',
  in_transit: '0.00',
  paid: '4375.00',
  payout_threshold: '1000.00',
  next_payout: {
    amount: '640.00',
    waits_for: 'below_threshold',
    missing: '360.00',
    replaces_failed: false,
  },
  currency: 'PKR',
}

const merchantSummary: MerchantSummaryWire = {
  role: 'merchant',
  sales: {
    ...MONTH,
    accepted: 21,
    attributed_by: { coupon: 6, click: 15 },
    commission: '18450.00',
    rejected: 3,
    rejected_by_reason: [
      { reason: 'no_tracking_reference', sales: 2 },
      { reason: 'not_paid', sales: 1 },
    ],
  },
  open_cycle: {
    id: '01a22ffa-0d14-7c31-9e5a-5b7d20c8f163',
    period_start: '2026-11-30T19:00:00.000Z',
    period_end: '2026-12-31T19:00:00.000Z',
    sales: 2,
    commission_total: '2250.00',
    fee_total: '225.00',
    expected_credit: '0.00',
    expected_amount_due: '2475.00',
    by_offer: [
      { offer_id: ID.offer, title: offer.title, sales: 2, commission: '2250.00', platform_fee: '225.00' },
    ],
    by_creator: [
      { creator_id: ID.creator, display_name: creator.display_name, sales: 2, commission: '2250.00' },
    ],
  },
  receivable: '0.00',
  available_credit: '0.00',
  currency: 'PKR',
}

/** By the name of the schema in `components`. */
export const COMPONENT_EXAMPLES: Record<string, unknown> = {
  AffiliateLink: affiliateLink,
  Application: application,
  BillingCycle: billingCycle,
  CreatorSummary: creatorSummary,
  CreditRequest: credit,
  Flag: flag,
  Job: job,
  MerchantSummary: merchantSummary,
  Offer: offer,
  OpenSession: openSession,
  Payout: payout,
  ResolvedLink: resolvedLink,
  Sale: sale,
  SaleOutcome: saleWithReceipt.outcome,
  SaleReceipt: saleWithReceipt.receipt,
  SaleWithReceipt: saleWithReceipt,
  Session: newSession,
  Store: store,
  User: creatorAccount,
  WebhookDelivery: webhookDelivery,
  WebhookEndpoint: webhookEndpoint,
  WebhookEndpointWithSecret: {
    ...webhookEndpoint,
    secret: 'whsec_TqjDsl2wLgDBLhOuTUTW2Yw3qTk0KDPEIcVnkwlRE1w=',
  } satisfies WebhookEndpointWithSecret,
}

/** Responses that depend on the caller, by operation. */
export const CALLER_EXAMPLES: Record<string, Record<string, unknown>> = {
  'links.resolve': {
    anyone: resolvedLink,
    party: { ...resolvedLink, coupon_code: 'SANA10' } satisfies ResolvedLink,
  },
  'users.me': { creator: creatorAccount, merchant: merchantAccount },
  'summaries.get': { creator: creatorSummary, merchant: merchantSummary },
}

/** Responses in another state than that of the component's example, by operation. */
export const STATE_EXAMPLES: Record<string, unknown> = {
  'offers.create': { ...offer, status: 'draft', updated_at: offer.created_at } satisfies Offer,
  'applications.apply': {
    ...application,
    status: 'pending',
    locked_commission_rate: null,
    affiliate_link: null,
    decided_at: null,
  } satisfies Application,
  'jobs.startExport': {
    ...job,
    state: 'queued',
    progress: 0,
    rows: 0,
    finished_at: null,
    expires_at: null,
    download_url: null,
  } satisfies Job,
  'admin.resolveFlag': {
    ...flag,
    status: 'resolved',
    note: RESOLUTION,
    resolved_at: '2026-11-20T10:02:41.300Z',
  } satisfies FlagWire,
  'admin.suspendUser': { ...creatorAccount, suspended: true } satisfies UserWire,
  'webhooks.test': { ...queuedDelivery, event_type: 'webhook.test' } satisfies WebhookDelivery,
  'webhooks.retry': queuedDelivery,
}

const credentials = { email: 'sana@reels.example.pk', password: 'seven quiet rivers' }

/** Request bodies, by operation. */
export const BODY_EXAMPLES: Record<string, Record<string, unknown>> = {
  'auth.register': { ...credentials, role: 'creator', display_name: creator.display_name },
  'auth.login': credentials,
  'auth.changePassword': {
    current_password: credentials.password,
    new_password: 'eleven mangoes at noon',
  },
  'auth.confirmTotp': { code: '492039' },
  'auth.renewRecoveryCodes': { code: '640917' },
  'auth.disableTotp': { code: '117538' },
  'auth.stepUp': { password: credentials.password, code: '804261' },
  'users.updateMe': {
    display_name: creator.display_name,
    payout_destination: { iban: 'PK36SCBL0000001123456702', account_title: 'SANA MIRZA' },
    current_password: credentials.password,
  },
  'stores.connect': { shop_domain: store.shop_domain, webhook_secret: 'shpss_5c1d0f8a7b3e4926' },
  'stores.rotateSecret': { webhook_secret: 'shpss_e07b6d2f41c85a93', revoke_former: false },
  'offers.create': {
    title: offer.title,
    description: offer.description,
    product_url: offer.product_url,
    image_url: offer.image_url,
    category: offer.category,
    niche: offer.niche,
    commission_rate: offer.commission_rate,
    attribution_window_days: offer.attribution_window_days,
    product_ids: offer.product_ids,
  },
  'offers.update': { title: offer.title, commission_rate: offer.commission_rate },
  'offers.setStatus': { status: 'live' },
  'applications.apply': { message: application.message, promotion_url: application.promotion_url },
  'applications.decide': { decision: 'approve' },
  'sales.requestCredit': { amount: credit.amount, reason: credit.reason },
  'webhooks.create': {
    url: webhookEndpoint.url,
    events: webhookEndpoint.events,
    description: webhookEndpoint.description,
  },
  'webhooks.update': { events: ['sale.accepted', 'sale.rejected', 'billing_cycle.closed'] },
  'jobs.startExport': {
    resource: 'sales',
    format: 'csv',
    from: '2026-11-01T00:00:00+05:00',
    to: '2026-12-01T00:00:00+05:00',
  },
  'admin.resolveFlag': { note: RESOLUTION },
  'admin.vetOffer': { decision: 'approve', commission_rate: 35 },
  'admin.suspendUser': { reason: 'Bought through their own link after a warning.' },
  'admin.reinstateUser': { reason: 'Agreed to the rules on own purchases.' },
}

/** Parameters and single fields, by name; more exact than the example of their type. */
export const FIELD_EXAMPLES: Record<string, unknown> = {
  slug: SLUG,
  cursor: 'IjAxYTFlZjg4LThhNjEtNzFmNy05MDFmLWU3MTAxMWJhMDg3MiI',
  next_cursor: 'IjAxYTFlZjg4LThhNjEtNzFmNy05MDFmLWU3MTAxMWJhMDg3MiI',
  category: offer.category,
  niche: offer.niche,
  q: 'embroidered lawn',
  commission_min: 10,
  commission_max: 20,
  merchant_id: ID.merchant,
  offer_id: ID.offer,
  from: '2026-11-01T00:00:00+05:00',
  to: '2026-12-01T00:00:00+05:00',
}

/** The id in a path, by the first part of the path. */
export const PATH_ID_EXAMPLES: Record<string, string> = {
  sessions: ID.session,
  stores: ID.store,
  offers: ID.offer,
  applications: ID.application,
  sales: ID.sale,
  jobs: ID.job,
  flagged: ID.flag,
  users: ID.creator,
  'webhook-endpoints': ID.endpoint,
  'webhook-deliveries': ID.delivery,
}

export const EXAMPLE_REQUEST_ID = ID.request
