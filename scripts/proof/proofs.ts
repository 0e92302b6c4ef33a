/**
 * How much a proof does. `npm test` leaves out the files that are marked "proof only" and runs the others once, without any
 * settings; these are the larger forms.
 */
export type Form = 'short' | 'long'

/**
 * A proof: test files that take their size from environment variables. `npm run proof` sets them to the long form,
 * `npm run proof -- --short` to the short form.
 */
export interface Proof {
  name: string
  /** What must hold, for the table. */
  promise: string
  /** Test files whose path contains one of these. */
  files: string[]
  /** Counts, multiplied by `--scale`, at least 1. */
  counts?: Record<Form, Record<string, number>>
  settings?: Record<Form, Record<string, string>>
  /** Whether a load must find a processor idle most of the time, so that only another such proof runs beside it. */
  apart?: true
  /** Whether `npm test` plays all of it on SQLite, so that after the tests only PostgreSQL is left. */
  testedOnSqlite?: true
}

/** `npm test` plays a part of these or nothing on PostgreSQL. Other proofs name the rest. */
const MARKET_TESTS = [
  ...['applications/', 'billing/', 'clicks/', 'exports/', 'flags/', 'inbox/', 'jobs/', 'ledger/', 'links/'],
  ...[
    'job-file',
    'metrics/',
    'redirect',
    'server',
    'shared-answers',
    'typed-links',
    'unsubscribe',
    'webhooks/',
  ].map((part) => `http/${part}`),
  ...[
    'notifications/channels/mail/',
    'offers/',
    'payouts/',
    'pending-orders/',
    'processes/',
    'processor/manual/',
    'profile/',
    'reports/',
    'sales/',
    'stores/',
    'users/',
    'watches/',
  ],
  ...['test/hostile-secrets', 'test/processor-fixtures', 'production-mark'],
  'http/idempotency',
].map((part) => `server/${part}`)
const COMMAND_TESTS = [
  ...['cli/commands/seed', 'cli/doctor/doctor', 'cli/test/books', 'cli/test/history-commands'],
  'cli/test/operator-commands',
]

export const PROOFS: readonly Proof[] = [
  {
    name: 'both databases',
    promise: 'each test over a marketplace passes on SQLite and on PostgreSQL',
    files: [...MARKET_TESTS, ...COMMAND_TESTS],
    testedOnSqlite: true,
  },
  {
    name: 'simulated weeks',
    promise: 'after every simulated story the books equal those of an independent model',
    files: ['server/test/simulation/'],
    counts: { short: { SIMULATED_WEEKS: 200 }, long: { SIMULATED_WEEKS: 10_000 } },
  },
  {
    name: 'kill',
    promise: 'kill -9 at named points and at random: nothing acknowledged is lost, nothing is doubled',
    files: ['server/test/kill/'],
    counts: { short: { KILLS_PER_POINT: 1 }, long: { KILLS_PER_POINT: 25, RANDOM_KILLS: 2000 } },
  },
  {
    name: 'race',
    promise: 'two processes race for one thing: one effect, no error',
    files: ['server/test/race/'],
    counts: { short: { RACES: 500 }, long: { RACES: 10_000 } },
  },
  {
    name: 'processor faults',
    promise: 'whatever the processor answers: at most one success, the same idempotency key, correct books',
    files: ['server/test/faults/', 'server/test/safepay/'],
    counts: { short: { FAULT_SEQUENCES: 100 }, long: { FAULT_SEQUENCES: 10_000 } },
  },
  {
    name: 'stall',
    apart: true,
    promise: 'a stalled or cut database: taken or answered 503, nothing lost around COMMIT',
    files: ['server/test/stall/', 'server/test/database-down', 'server/test/database-locked'],
    settings: { short: { STALLS: '1' }, long: { STALLS: '1,5,30' } },
  },
  {
    name: 'unusable databases',
    promise:
      'a PostgreSQL server with another certificate, without TLS, without its standby or with other settings: 503 or a refusal that says what to do; backups of it restore, damaged ones are refused',
    files: ['server/test/unusable-database', 'cli/backup/restore-postgresql'],
  },
  {
    name: 'failover',
    apart: true,
    promise:
      'primary killed, switched or frozen, standby lost, web restarted, database migrated ahead: nothing lost, doubled or answered 500',
    files: ['server/test/failover/'],
    counts: {
      short: { FAILOVER_RATE: 60, FAILOVER_ROUNDS: 1, FAILOVER_OUTAGE: 2500 },
      long: { FAILOVER_RATE: 120, FAILOVER_ROUNDS: 5, FAILOVER_OUTAGE: 10_000 },
    },
  },
  {
    name: 'exact amounts',
    promise: 'amounts around 2^53 paisa in one merchant: all others close, are invoiced and paid',
    files: ['server/billing/exact-amounts'],
  },
  {
    name: 'clock',
    promise: 'clock jumps, month ends, 29 February, midnight in Karachi',
    files: ['server/test/clock', 'server/billing/billing-period.rule'],
  },
  {
    name: 'invariants',
    promise: 'each invariant finds a row that was changed directly in the database',
    files: ['server/verification/', 'server/migrations/guards'],
  },
  {
    name: 'forged rows',
    promise:
      'forged rows in every queue (inbox, attempts, outbox, exports, mails, schedule runs) cause nothing and are found',
    files: ['server/test/forged/', 'server/ledger/hostile-writer', 'server/verification/verify-books'],
  },
  {
    name: 'adversaries',
    promise:
      'evasions by merchants, frauds by creators and visitors: each rejected, refused or flagged; honest trade is not',
    files: ['server/test/adversaries/'],
  },
  {
    name: 'fuzz',
    promise: 'no answer of 500 or above and no hang, whatever is sent or typed',
    files: ['server/test/fuzz/'],
    counts: {
      short: { FUZZ_REQUESTS: 20_000, FUZZ_COMMANDS: 1500 },
      long: { FUZZ_REQUESTS: 1_000_000, FUZZ_COMMANDS: 20_000 },
    },
  },
  {
    name: 'hostile bodies',
    promise:
      'signed bodies of 2 MiB in any shape: no stall over 50 ms; a pile of them drains in a small heap',
    files: ['server/test/hostile/'],
    counts: { short: { HOSTILE_BODIES: 20 }, long: { HOSTILE_BODIES: 2000 } },
    settings: {
      short: { HOSTILE_PILE: '50', HOSTILE_PILE_HEAP: '80' },
      long: { HOSTILE_PILE: '300', HOSTILE_PILE_HEAP: '512' },
    },
  },
  {
    name: 'webhooks',
    promise:
      '10,000 deliveries in under 20 s and in bounded memory, beside a dead endpoint; accounts share deliveries: slow endpoints hold back only themselves; slow, redirecting, resetting and lying receivers; no private address',
    files: [
      'server/notifications/channels/webhooks/',
      'server/notifications/outbox',
      'server/platform/network/public-address',
    ],
    counts: { short: { SLOW_ACCOUNTS: 1 }, long: { SLOW_ACCOUNTS: 10 } },
  },
  {
    name: 'store script',
    promise:
      'in a real browser, from the affiliate link to the accepted sale: cart, buy now, two tabs, return, consent, blocked storage',
    files: ['server/test/storefront/'],
  },
  {
    name: 'portal',
    promise:
      'in Chromium and in Firefox: every screen opens for each role, in both languages, color schemes and four widths, without a complaint of axe or the console; from nothing to a paid payout by clicking; odd names, refused storage, wrong clocks, slow answers, ended sessions and a service that is gone leave it working',
    files: ['server/test/portal/', 'server/http/portal'],
  },
  {
    name: 'pages',
    promise: 'the reference and the account pages work in a real browser, which asks no one else',
    files: ['server/http/docs', 'server/http/account-pages'],
  },
  {
    name: 'authorization',
    promise: 'every route answers exactly the callers it is for, and no id of another account',
    files: ['server/test/authorization/'],
  },
  {
    name: 'commands',
    promise:
      'commands fit a terminal of 80 columns, hold no lock while they ask, survive signals, full and broken disks; the demo runs with the sandbox and with Safepay; every fixture leads to what it must',
    files: [
      'cli/test/every-command',
      'cli/test/interruption',
      'cli/test/locks',
      'cli/test/bad-disk',
      'cli/demo/run-demo',
      'cli/demo/safepay-demo',
      'cli/replay/replay-all',
    ],
  },
  {
    name: 'package',
    promise: 'the packed package installs and runs in an empty folder; the README works line by line',
    files: ['scripts/package.test', 'server/test/quick-start'],
  },
  {
    name: 'client package',
    promise:
      'one small package with exact types; calls the service on Node 20, 22 and 24 and in a browser; its README runs as written',
    files: ['scripts/client-package.test', 'server/http/openapi/openapi-client'],
  },
  {
    name: 'generated clients',
    promise:
      'what openapi-typescript, openapi-ts, orval with zod and openapi-zod-client make of the document compiles and calls the service',
    files: ['scripts/generated-clients.test'],
  },
  {
    name: 'deployment',
    promise:
      'units, alert rules and Caddyfile are valid and work; a backup counts once its restore drill succeeded',
    files: ['scripts/deploy/deployment.test'],
  },
  {
    name: 'migrations',
    promise: 'the migrations make what the entities describe, once, also from two processes',
    files: ['server/migrations/migrations'],
  },
]

/** The environment variables that set the size of a proof. `scale` multiplies its counts. */
export function sizeOf({ counts, settings }: Proof, form: Form, scale = 1): Record<string, string> {
  const scaled = Object.entries(counts?.[form] ?? {}).map(([name, count]) => [
    name,
    String(Math.max(1, Math.round(count * scale))),
  ])
  return { PROOF_FORM: form, ...Object.fromEntries(scaled), ...settings?.[form] }
}
