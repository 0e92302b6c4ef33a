import { optional, z } from 'zod'
import {
  appKey,
  bearerToken,
  choice,
  contactAddress,
  cronOrOff,
  databaseUrl,
  displayName,
  flag,
  formerKeys,
  host,
  httpUrl,
  instructions,
  mailbox,
  money,
  networks,
  origins,
  postgresUrl,
  proxies,
  rate,
  replicaUrl,
  roles,
  safepayToken,
  sealStorage,
  secrets,
  smtpUrl,
  text,
  timeZone,
  titles,
  whole,
  wholeNumber,
} from './setting-kinds.ts'

/** As checkouts and forms for cash on delivery name what they add to an order. */
export const DEFAULT_FEE_TITLES = [
  'cash on delivery',
  'cash on delivery charges',
  'cash on delivery fee',
  'COD',
  'COD charges',
  'COD fee',
  'convenience fee',
  'courier charges',
  'delivery',
  'delivery charges',
  'delivery fee',
  'express delivery',
  'handling charges',
  'handling fee',
  'packaging charges',
  'packing charges',
  'payment fee',
  'priority delivery',
  'processing fee',
  'service charges',
  'service fee',
  'shipping',
  'shipping charges',
  'shipping cost',
  'shipping fee',
  'shipping protection',
  'transaction fee',
  'ڈیلیوری چارجز',
  'ڈیلیوری فیس',
]

/**
 * Every setting with its default and its meaning, in the order of `guides/settings.md`. `npm run settings:guide` writes the
 * tables there: `description` is the meaning, in Markdown, and `unset` says what applies without a value and a default. A
 * `prefault` is written as in the environment.
 */
const Service = {
  // A typo would switch the production rules off, so only these values are accepted.
  NODE_ENV: choice('development', 'test', 'production').describe(
    '`production` enables the checks for production: see [Security](security.md#in-production)',
  ),
  HOST: host.default('127.0.0.1').describe('the address that the service listens on'),
  PORT: whole(0, 65_535, 3000).describe('the port that it listens on; 0 picks a free one'),
  PUBLIC_BASE_URL: optional(httpUrl).meta({
    description:
      'what affiliate links start with: the https address that leads to this service. Production needs it',
    unset: '`http://HOST:PORT`',
  }),
  MARKETPLACE_NAME: displayName
    .default('Affiliate marketplace')
    .describe('what the marketplace is called in mails, on pages and in authenticator apps'),
  APP_URL: optional(httpUrl).meta({
    description: 'where mails and account pages lead people back to, such as your own app',
    unset: 'the portal at `/app`; nowhere with `PORTAL=off`',
  }),
  ROLES: roles
    .prefault('web,worker,scheduler')
    .describe('what this process does; any subset, comma-separated'),
  DRAIN_SECONDS: whole(0, 300, 5).describe(
    'how long `/readyz` answers 503 after SIGTERM before the service stops listening, so that a load balancer can take it out; at least two of its checks. Ctrl-C skips it',
  ),
  HEALTH_PORT: optional(wholeNumber(1, 65_535)).meta({
    description: 'a port for `/healthz`, `/readyz` and `/metrics` of a process without the role `web`',
    unset: 'none',
  }),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('`trace`, `debug`, `info`, `warn`, `error` or `silent`'),
  TRUST_PROXY: optional(proxies).describe(
    'the proxies that may name the client: how many stand in front of the service, or their addresses, comma-separated',
  ),
  LINK_FALLBACK_URL: optional(httpUrl).describe(
    'where a browser is redirected whose link is unknown, or belongs to a suspended merchant; without it, it gets a small page in English and Urdu',
  ),
  PORTAL: choice('on', 'off').describe(
    '`on` serves the portal, the pages for merchants and creators, at `/app`; `off` does not',
  ),
  CORS_ORIGINS: optional(origins).describe(
    'origins of other web pages that may call the API from a browser, comma-separated',
  ),
  METRICS_TOKEN: optional(bearerToken).describe(
    'the bearer token of `/metrics`. Without it, `/metrics` answers on this machine only, and not in production',
  ),
  SECURITY_CONTACT: optional(contactAddress).describe(
    'an https or mailto address for reports of vulnerabilities, shown at `/.well-known/security.txt`; without it, that is 404',
  ),
  LIVE_STREAMS: whole(0, 100_000, 500).describe(
    'open live streams per process. Accounts without an accepted sale share half of them',
  ),
  LIVE_STREAMS_PER_USER: whole(1, 1000, 5).describe('open live streams per user'),
}

const Data = {
  DATABASE_URL: databaseUrl
    .default('sqlite:./data/affiliate.db')
    .describe(
      '`sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`; a primary and its standbys as `HOST:PORT,HOST:PORT`, with `?target_session_attrs=read-write` or without: the service finds the primary',
    ),
  DATABASE_DIRECT_URL: optional(postgresUrl).meta({
    description:
      'the same database past a transaction pooler, for listening, migrations and commands: see [PgBouncer](operate.md#pgbouncer)',
    unset: '`DATABASE_URL`',
  }),
  DATABASE_READ_URL: optional(replicaUrl).describe(
    'a replica of the same database, for public lists and exports: see [A replica for reads](operate.md#a-replica-for-reads)',
  ),
  DATABASE_POOL_SIZE: whole(2, 100, 10).describe(
    'connections of each process to PostgreSQL, three of five for writes; it opens up to two more: see [Connections](operate.md#connections-to-postgresql)',
  ),
  DATA_DIR: optional(text).meta({
    description: "the folder of keys, export files and the sandbox's state",
    unset: 'the folder of the SQLite file; `./data` with PostgreSQL',
  }),
  APP_KEY: optional(appKey).meta({
    description:
      '32 random bytes in base64 (`openssl rand -base64 32`): encrypts secrets and signs the journal. Required in production. Keep a copy elsewhere',
    unset: 'created in `DATA_DIR/app.key`',
  }),
  APP_KEYS_FORMER: formerKeys
    .default([])
    .describe(
      'keys that `APP_KEY` has replaced, comma-separated: see [Security](security.md#replace-the-key)',
    ),
  RAW_EVENT_RETENTION_DAYS: whole(1, 3650, 90).describe(
    "days that raw webhook bodies, which hold buyers' data, are kept",
  ),
  CLICK_RETENTION_DAYS: whole(0, 36_500, 0).describe(
    'days that clicks are kept; 0 = forever. At least 396 plus `RAW_EVENT_RETENTION_DAYS`',
  ),
  SEAL_STORAGE: optional(sealStorage).describe(
    "write-once storage for copies of the journal's seals: `s3://BUCKET/PREFIX` with object lock, or a folder outside `DATA_DIR`",
  ),
  EXPORT_STORAGE: choice('local', 's3').describe(
    'where export files are kept: `local`, the folder `exports` in `DATA_DIR`, or `s3`. With processes on several hosts only `s3` makes exports',
  ),
  S3_BUCKET: optional(text).describe('the bucket of export files; required with `EXPORT_STORAGE=s3`'),
  S3_REGION: text.default('us-east-1').describe('the region of the S3 storage'),
  S3_ENDPOINT: optional(httpUrl).describe('the address of an S3-compatible storage; not needed for AWS'),
  S3_ACCESS_KEY_ID: optional(text).describe('the access key of exports and seals in S3'),
  S3_SECRET_ACCESS_KEY: optional(text).describe('its secret'),
  S3_FORCE_PATH_STYLE: flag
    .prefault('false')
    .describe(
      '`true` puts the bucket into the path instead of the host name, as most servers other than AWS need it',
    ),
}

const Money = {
  PLATFORM_FEE_RATE: rate(10).describe(
    'fee as a percentage of the commission, billed to the merchant on top of it',
  ),
  PAYOUT_THRESHOLD: money.prefault('1000.00').describe('the least balance that is paid out'),
  HIGH_COMMISSION_RATE: rate(30).describe("offers above this rate need an admin's approval"),
  BILLING_PERIOD: choice('monthly', 'weekly', 'daily').describe(
    'the length of a billing cycle: `monthly`, `weekly` or `daily`',
  ),
  BILLING_TIMEZONE: timeZone
    .default('Asia/Karachi')
    .describe('the time zone of billing periods and of the schedules'),
  SCHEDULE_BILLING: cronOrOff
    .default('5 0 * * *')
    .describe('when billing cycles are closed: five cron fields in the billing time zone, or `off`'),
  SCHEDULE_PAYOUTS: cronOrOff.default('*/15 * * * *').describe('when payouts are made'),
  SCHEDULE_RECONCILIATION: cronOrOff
    .default('35 4 * * *')
    .describe("when invoices and payouts are compared with the processor's records"),
  FEE_TITLES: titles
    .prefault(DEFAULT_FEE_TITLES.join(', '))
    .describe(
      'titles of order lines that are fees and no goods, comma-separated; they earn no commission. Compared without case, numbers, marks and the currency. Replaces the default list',
    ),
  PENDING_ORDER_DAYS: whole(1, 3650, 60).describe(
    'days after which an order that was placed and not paid is no longer expected; a later payment still becomes a sale',
  ),
  TRACKING_PARAMETER: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_-]{0,39}$/, 'must be a plain query parameter name')
    .default('aff_ref')
    .describe('the query parameter, and the note attribute of an order, that carries the tracking reference'),
}

const Processor = {
  PROCESSOR: choice('sandbox', 'http', 'safepay-raast', 'manual').describe(
    '`sandbox` (part of the service, moves no money, refused in production), `http`, [`safepay-raast`](safepay.md) or [`manual`](manual.md), bank transfers that an admin confirms',
  ),
  MANUAL_PAYMENT_INSTRUCTIONS: optional(instructions).describe(
    'how merchants pay an invoice, such as the bank account and that the number of the invoice is the reference; `\\n` is a line break. Required with `PROCESSOR=manual`',
  ),
  PROCESSOR_URL: optional(httpUrl).describe('the address of its API; required with `PROCESSOR=http`'),
  PROCESSOR_API_KEY: optional(text).describe('the key for its API; required with `PROCESSOR=http`'),
  PROCESSOR_WEBHOOK_SECRETS: optional(secrets).describe(
    'secrets that its events may be signed with, comma-separated; required except with the sandbox. Several during a rotation',
  ),
  PROCESSOR_SIGNATURE: choice('standard-webhooks', 'safepay-raast', 'safepay-v2', 'hmac').describe(
    'how its events are signed: `standard-webhooks`, `safepay-raast` (what `PROCESSOR=safepay-raast` uses unless another is set), `safepay-v2` or `hmac`',
  ),
  PROCESSOR_SIGNATURE_HMAC: optional(z.string()).describe(
    'the details of an `hmac` signature, in [JSON](#a-signature-of-your-own)',
  ),
  PROCESSOR_EVENTS: optional(z.string()).meta({
    description: 'what its event types mean, in [JSON](#event-types-of-your-own)',
    unset: 'built-in rules',
  }),
  PROCESSOR_TIMEOUT_MS: whole(100, 120_000, 10_000).describe(
    'how long a call to it may take, in milliseconds',
  ),
  SAFEPAY_AGGREGATOR_ID: optional(safepayToken).describe(
    'the id of the aggregator account, `agg_...`; required with `PROCESSOR=safepay-raast`',
  ),
  SAFEPAY_MERCHANT_ID: optional(safepayToken).describe(
    'the aggregator merchant that payment requests are made for, `am_...`; required with `PROCESSOR=safepay-raast`',
  ),
  SAFEPAY_SECRET_KEY: optional(safepayToken).describe(
    "the aggregator's secret key, `sk_...`; required with `PROCESSOR=safepay-raast`",
  ),
  SAFEPAY_URL: httpUrl
    .default('https://api.getsafepay.com/raastwire')
    .describe('the address of its API; its sandbox is `https://dev.api.getsafepay.com/raastwire`'),
  SAFEPAY_PAYOUT_EVENT_UNIT: choice('rupees', 'paisa').describe(
    'the unit of payout amounts in its events and records, which its documentation leaves open: `rupees` or `paisa`. A wrong one is flagged and moves nothing',
  ),
}

const Mail = {
  SMTP_URL: optional(smtpUrl).meta({
    description:
      'the mail server, `smtp://USER:PASSWORD@HOST:PORT` or `smtps://...`; `off` sends no mail. Encryption is required unless the server is on this machine or `?tls=optional` follows',
    unset: 'files in `DATA_DIR/mail`; `off` in production',
  }),
  MAIL_FROM: optional(mailbox).meta({
    description:
      'the sender, `ADDRESS` or `NAME <ADDRESS>`. Users reply to it to unsubscribe. Required with `SMTP_URL`',
    unset: '`no-reply@localhost`',
  }),
  REQUIRE_VERIFIED_EMAIL: optional(flag).meta({
    description:
      'whether an account must verify its e-mail address before it sets an offer live, applies to an offer or sets a payout destination',
    unset: '`true` in production with `SMTP_URL`, else `false`',
  }),
}

const Limits = {
  RATE_LIMIT_AUTH: whole(0, 1_000_000, 20).describe(
    'log-ins, registrations and other password attempts a minute per address; 0 = off, also per account',
  ),
  RATE_LIMIT_PUBLIC: whole(0, 1_000_000, 600).describe(
    'calls of other public routes a minute per address; 0 = off',
  ),
  RATE_LIMIT_USER: whole(0, 1_000_000, 300).describe(
    'calls a minute per account, over REST and tRPC; 0 = off',
  ),
  WEBHOOK_EVENTS_PER_MINUTE: whole(0, 1_000_000_000, 120_000).describe(
    'new, validly signed deliveries a minute per store and process; 0 = off',
  ),
  WEBHOOK_BYTES_PER_MINUTE: whole(0, 1_000_000_000_000, 1_500_000_000).describe('their bytes; 0 = off'),
}

const Flags = {
  FLAG_CLICKS: whole(0, 1_000_000, 100).describe(
    'visits of a link from one address within `FLAG_CLICKS_SECONDS` that raise `click_velocity`, if the address is of a data center or the link sold nothing (`FLAG_CLICKS_UNSOLD`); 0 = off',
  ),
  FLAG_CLICKS_UNSOLD: whole(0, 1_000_000_000, 300).describe(
    'visits of a link within `FLAG_CONVERSION_DAYS`, each at least 3 days old, without an accepted sale: the second sign for `FLAG_CLICKS`; 0 = off',
  ),
  DATACENTER_NETWORKS: networks
    .default([])
    .describe(
      'addresses and networks of data centers beside the large ones that the service knows, such as `203.0.113.0/24`, comma-separated',
    ),
  FLAG_CLICKS_SECONDS: whole(10, 3600, 600).describe('the time for `FLAG_CLICKS`, in seconds'),
  FLAG_CONVERSION_RATE: rate(30).describe(
    'the share of the visits of a link that become accepted sales, in percent, above which `conversion_unusual` is raised',
  ),
  FLAG_CONVERSION_VISITS: whole(1, 1_000_000, 50).describe(
    'the least visits for `FLAG_CONVERSION_RATE`, and for `conversion_dropped`',
  ),
  FLAG_CONVERSION_NONE: whole(0, 1_000_000_000, 5000).describe(
    'visits of a link without an accepted sale that raise `conversion_unusual`; 0 = off',
  ),
  FLAG_CONVERSION_DAYS: whole(1, 90, 14).describe(
    'the days that `conversion_unusual` and `conversion_dropped` look at',
  ),
  FLAG_CONVERSION_DROP_SALES: whole(0, 1_000_000, 10).describe(
    'the least sales that were to be expected of a link within `FLAG_CONVERSION_DAYS`; `conversion_dropped` is raised when at most a tenth came; 0 = off',
  ),
  FLAG_SELF_PURCHASES: whole(1, 1_000_000, 1).describe(
    "a creator's orders through their own link within `FLAG_SELF_PURCHASES_DAYS` that raise `self_purchase`",
  ),
  FLAG_SELF_PURCHASES_DAYS: whole(1, 365, 30).describe('the days for `FLAG_SELF_PURCHASES`'),
  FLAG_REJECTED_SALES: whole(1, 1_000_000, 20).describe(
    "a store's rejected orders with a tracking reference within `FLAG_REJECTED_SALES_HOURS` that raise `rejected_sales_burst`, if they are also `FLAG_REJECTED_SALES_RATE` of all its orders with one",
  ),
  FLAG_REJECTED_SALES_RATE: rate(50).describe('the share for `FLAG_REJECTED_SALES`, in percent'),
  FLAG_REJECTED_SALES_HOURS: whole(1, 720, 24).describe('the hours for `FLAG_REJECTED_SALES`'),
  FLAG_REJECTED_SALES_LEAST: whole(0, 1_000_000, 5).describe(
    "flags fewer rejections too, from this many on, if their share is `FLAG_REJECTED_SALES_TIMES` the store's share of 30 days; 0 = off",
  ),
  FLAG_REJECTED_SALES_TIMES: whole(2, 1000, 4).describe('the factor for `FLAG_REJECTED_SALES_LEAST`'),
  FLAG_ORDERS_PER_CLICK: whole(1, 1_000_000, 3).describe(
    'accepted orders that may name one click; more raise `click_reused`',
  ),
  FLAG_COUPON_LEAK: whole(0, 1_000_000, 20).describe(
    "accepted orders with a link's coupon code within `FLAG_COUPON_LEAK_DAYS`, without any click on its creator's links, that raise `coupon_leak`; 0 = off",
  ),
  FLAG_COUPON_LEAK_DAYS: whole(1, 30, 7).describe('the days for `FLAG_COUPON_LEAK`'),
  FLAG_TRACKING_SHIFT: rate(50).describe(
    "the share of a store's orders, in percent, that must move within a week to another way of naming their link (cart, line, landing page, coupon code, none) to raise `tracking_source_shift`; more than this share raises it",
  ),
  FLAG_TRACKING_SHIFT_ORDERS: whole(0, 1_000_000, 20).describe(
    'the least orders in each of the two weeks for `FLAG_TRACKING_SHIFT`; 0 = off',
  ),
  FLAG_STORE_SILENT_DAYS: whole(1, 90, 7).describe(
    'days without any event after which a store with regular orders raises `store_silent`',
  ),
  FLAG_STORE_SILENT_REGULAR: whole(0, 28, 14).describe(
    'days with orders, of the 28 up to the last event, that make orders regular for `FLAG_STORE_SILENT_DAYS`; 0 = off',
  ),
  FLAG_PAUSED_VISITS: whole(0, 1_000_000_000, 50).describe(
    'visits of a paused or ended offer within a day, after at least as many tracked ones, that raise `offer_paused_in_traffic`; 0 = off',
  ),
  FLAG_PAUSED_ORDERS: whole(0, 1_000_000, 5).describe(
    'rejected orders within 30 days, dated into pauses of at most an hour of an offer or its coupon code, that raise `orders_in_pauses`; 0 = off',
  ),
  FLAG_ORDER_AGE_DAYS: whole(0, 3650, 90).describe(
    "days from an order's creation to its payment; more raise `order_date_suspicious`; 0 = off",
  ),
  FLAG_CYCLE_UNPAID_DAYS: whole(1, 365, 14).describe(
    'days after which a closed billing cycle that is not paid raises `cycle_unpaid`',
  ),
}

/** The settings by section of the guide. */
export const SETTING_GROUPS = { Service, Data, Money, Processor, Mail, Limits, Flags }
