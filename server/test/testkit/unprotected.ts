import {
  DIGESTED_TABLES,
  type DigestedTables,
  type Unprotected,
} from '../../platform/database/protected-tables.ts'
import type { Schema } from '../../platform/database/schema.ts'

type Table = keyof Schema

/**
 * Why verification does not find what a database writer without APP_KEY does to a column. `shown` is only shown to people; `state` says
 * whether, when and how often something is done, never what; `use` names the check that finds it at its use.
 */
export const KINDS = ['shown', 'state', 'use'] as const
type Reason = `${(typeof KINDS)[number]}: ${string}`

const TEXT = 'shown: words that are only shown'
const TIMES = 'shown: times that are only shown'
const COUNTS = 'shown: counts of visits and deliveries that are only shown'
const TRIES = 'state: when, by which process and how often something is tried, and how it ended'
const NOT_DONE = 'state: what is deleted is not done'
const WATCHED = 'state: what the watches have seen; they flag more or less'

/** Everything in the tables without digests that verification does not find. `*` stands for all of a table. A test keeps the list exact. */
export const UNPROTECTED: { readonly [T in Table]?: { readonly [K in keyof Unprotected<T>]: Reason } } = {
  login_addresses: { '*': 'state: whether a mail about a new address of a log-in is sent' },
  mails: {
    token_encrypted: 'use: the token opens only in its own mail',
    state: TRIES,
    attempts: TRIES,
    next_try_at: TRIES,
    lease_token: TRIES,
    lease_until: TRIES,
    last_error: TRIES,
    give_up_at: TRIES,
    finished_at: TRIES,
    'deleted rows': NOT_DONE,
  },
  mail_opt_outs: { '*': 'state: which mails about events a person gets' },
  store_secrets: { 'deleted rows': 'use: a delivery that no secret verifies is refused' },
  store_days: { '*': COUNTS },
  unclaimed_domains: { '*': COUNTS },
  clicks: { repeated: COUNTS, sub_id: 'shown: the mark by which a creator tells placements apart' },
  uncounted_clicks: { id: COUNTS, slot: COUNTS, sub_id: COUNTS, clicks: COUNTS, untracked_visits: COUNTS },
  click_days: { '*': COUNTS },
  counted_visitors: { '*': COUNTS },
  sales: { created_at: TIMES },
  payouts: { failure_reason: TEXT, submitted_at: TIMES, settled_at: TIMES },
  inbound_events: {
    attempts: TRIES,
    next_attempt_at: TRIES,
    lease_token: TRIES,
    lease_until: TRIES,
    reason: TEXT,
    reason_code: 'state: which open flag is closed when an event is tried again',
    result: TEXT,
    finished_at: TRIES,
    order_id:
      'state: whether an order that the store took back before it was placed waits for a payment; no money depends on it',
    order_name: TEXT,
    'deleted rows':
      "state: an event that was not applied yet never is; comparing a store's orders, or the processor's records, finds it",
  },
  inbound_bodies: {
    event_id: 'use: a body has the hash that its event names',
    'added rows': 'use: a body has the hash that its event names',
    'deleted rows': 'use: an event without its body is not applied',
  },
  operator_deliveries: { '*': 'shown: which deliveries an operator sent' },
  processor_attempts: {
    tries: TRIES,
    next_try_at: TRIES,
    unknown_at: TRIES,
    lease_token: TRIES,
    lease_until: TRIES,
    detail: TEXT,
    settled_at: TIMES,
  },
  outbox_events: { sequence: TRIES, distributed_at: TRIES, 'deleted rows': NOT_DONE },
  webhook_secrets: { 'deleted rows': 'use: receivers refuse what their secret did not sign' },
  webhook_deliveries: {
    state: TRIES,
    attempts: TRIES,
    due_at: TRIES,
    lease_until: TRIES,
    lease_token: TRIES,
    attempted_at: TRIES,
    response_status: TEXT,
    response_body: TEXT,
    error: TEXT,
    attempt_log: TEXT,
    finished_at: TRIES,
    'deleted rows': NOT_DONE,
  },
  link_days: { '*': WATCHED },
  mailboxes: { '*': WATCHED },
  schedule_runs: { 'deleted rows': TRIES },
  export_jobs: {
    state: TRIES,
    due_at: TRIES,
    lease_token: TRIES,
    attempts: TRIES,
    rows_total: COUNTS,
    rows_done: COUNTS,
    error: TEXT,
    file_key: 'use: only a file of the same job is sent',
    finished_at: TRIES,
    expires_at: TRIES,
    'deleted rows': NOT_DONE,
  },
  processes: { '*': 'shown: which processes run, with which settings' },
  rate_limits: { '*': 'state: how often a client has asked' },
  idempotency_keys: { '*': 'use: an answer opens only for its own account and key' },
  watermarks: { '*': 'state: how far jobs have read; marks that prove something are sealed' },
}

/** All that is unprotected in a table, with the reasons, also what its digests leave out. */
export function unprotectedIn(table: Table): Readonly<Record<string, string>> {
  const digested: DigestedTables = DIGESTED_TABLES
  return { ...digested[table]?.unprotected, ...UNPROTECTED[table] }
}

/** The tables of one kind as the guide lists them. */
export function tablesOf(kind: (typeof KINDS)[number]): string {
  const tables = Object.entries(UNPROTECTED).filter(([, reasons]) =>
    Object.values(reasons).some((reason) => reason.startsWith(`${kind}:`)),
  )
  return tables.map(([table]) => `\`${table}\``).join(', ')
}
