import type { Schema } from './schema.ts'

type Table = keyof Schema

/** What a writer without APP_KEY may change unseen, each with the reason. `*` stands for every column. */
export type Unprotected<T extends Table> = Partial<
  Record<keyof Schema[T] | '*' | 'added rows' | 'deleted rows', string>
>

/** A table whose rows carry `row_digest`: a keyed digest of `columns`, or of all columns but those that are named here. */
interface DigestedTable<T extends Table> {
  /** The primary key; `id` by default. */
  key?: readonly (keyof Schema[T])[]
  /** Whether the heads count the rows, so that a deleted row and the return of an older one are found; true by default. */
  counted?: false
  /** An SQL condition that rows come to meet and then meet for good: of those only, the heads hold the number, by `noteCounted`. */
  countedOnce?: string
  /** Of a queue, whose other columns say when and how often something is done. A rotation of APP_KEY leaves its digests. */
  columns?: readonly (keyof Schema[T])[]
  /** A verification of what is new checks rows with new ids only. */
  large?: true
  /** Columns that change too often for the digest, or that PostgreSQL generates. Other invariants find changes of the first. */
  covered?: readonly (keyof Schema[T] | 'search_vector')[]
  unprotected?: Unprotected<T>
}

export type DigestedTables = { [T in Table]?: DigestedTable<T> }

/**
 * The tables that move money or grant power, row by row. Rows are written with their digests by the functions of `protected-rows.ts`,
 * checked where they are used, and verified by `rows-authentic` and `rows-complete`.
 */
export const DIGESTED_TABLES = {
  users: {},
  sessions: { unprotected: { last_used_at: 'is only shown in the list of sessions' } },
  api_keys: { unprotected: { last_used_at: 'is only shown in the list of keys' } },
  account_tokens: { key: ['user_id', 'purpose'] },
  // The sealed column is bound to the others, and changes when APP_KEY does.
  second_factors: { key: ['user_id'], covered: ['secret_encrypted'] },
  recovery_codes: { key: ['user_id', 'code_hash'] },
  offers: {
    covered: ['search_vector'],
    unprotected: {
      category_key: 'is only searched',
      niche_key: 'is only searched',
      search_words: 'is only searched',
    },
  },
  stores: {
    unprotected: {
      first_event_at: 'is only shown, sorts the claims on one domain, and says which of ten makes room',
      last_refused_at: 'is only shown',
      last_refusal: 'is only shown',
      refused_since: 'says when a merchant is notified of refused deliveries',
      refused_count: 'is only shown',
      rejecting_sent_at: 'says when a merchant is notified of refused deliveries',
    },
  },
  offer_status_changes: { key: ['offer_id', 'sequence'] },
  applications: {},
  affiliate_links: {},
  link_coupons: {},
  // The sealed columns are bound to all others, and change when APP_KEY does.
  payout_destinations: { covered: ['iban_encrypted', 'iban_fingerprint'] },
  billing_accounts: { covered: ['account_encrypted'] },
  // The running totals: the sales and the journal say what they are.
  billing_cycles: { covered: ['sales_count', 'commission_total', 'fee_total'] },
  pending_orders: {},
  // Of credits, which never change, the journal says how many there are.
  credits: { counted: false },
  ledger_seals: { key: ['position'] },
  webhook_endpoints: {
    unprotected: { failing_since: 'says when an endpoint is tried again and disabled, never what is sent' },
  },
  flags: {
    unprotected: {
      summary: 'is only shown, and changes with every later event',
      evidence: 'is only shown, and changes with every later event',
    },
  },
  audit_entries: {},
  // Intake learns only at the end of its one statement what was new, so an event counts once it was applied.
  inbound_events: {
    countedOnce: "state in ('done', 'ignored')",
    large: true,
    columns: [
      'id',
      'source',
      'scope',
      'delivery_id',
      'conflict_hash',
      'body_hash',
      'topic',
      'received_at',
      'triggered_at',
    ],
  },
  processor_attempts: {
    columns: ['id', 'kind', 'subject_id', 'amount', 'request', 'processor_id', 'created_at'],
  },
  manual_transfers: {},
  outbox_events: {
    counted: false,
    large: true,
    columns: ['id', 'type', 'account_id', 'subject_id', 'data', 'created_at'],
  },
  webhook_deliveries: {
    counted: false,
    large: true,
    columns: ['id', 'endpoint_id', 'event_id', 'subject_id', 'sequence', 'created_at'],
  },
  mails: {
    counted: false,
    columns: ['id', 'user_id', 'address', 'kind', 'facts', 'event_key', 'created_at'],
  },
  schedule_runs: { key: ['name'], counted: false, columns: ['name', 'started_at', 'finished_at', 'outcome'] },
  export_jobs: {
    counted: false,
    columns: [
      'id',
      'user_id',
      'role',
      'resource',
      'format',
      'excel',
      'billing_cycle_id',
      'from_at',
      'to_at',
      'created_at',
    ],
  },
} as const satisfies DigestedTables

export type Digested = keyof typeof DIGESTED_TABLES

interface Declaration {
  key: readonly string[]
  counted: boolean
  countedOnce?: string
  columns?: readonly string[]
  large?: true
  covered?: readonly string[]
  unprotected?: Readonly<Record<string, string>>
}

/** What is declared of a table, with the defaults. */
export function declarationOf(table: Digested): Declaration {
  const declared: Partial<Declaration> = DIGESTED_TABLES[table]
  return { key: ['id'], counted: true, ...declared }
}
