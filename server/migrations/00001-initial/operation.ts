import type { Ddl } from '../ddl.ts'

const AUDIT_COLUMNS = [
  'id',
  'actor',
  'action',
  'subject_type',
  'subject_id',
  'reason',
  'before',
  'after',
  'created_at',
]

/** The inbox, the outbox, flags, the audit trail, and what the processes share. */
export function operation(ddl: Ddl): string[] {
  const { id, unique, oneOf, onlyAdded, neverDeleted, refuse, references, onSqlite, onPostgres } = ddl
  return [
    `create table "inbound_events" (
      "id" ${id} not null primary key,
      "source" text not null,
      "scope" text not null,
      "delivery_id" text not null,
      "conflict_hash" text not null,
      "body_hash" text not null,
      "topic" text,
      "received_at" bigint not null,
      "triggered_at" bigint,
      "state" text not null,
      "attempts" integer not null,
      "next_attempt_at" bigint not null,
      "lease_token" text,
      "lease_until" bigint not null,
      "reason" text,
      "reason_code" text,
      "result" text,
      "finished_at" bigint,
      "order_id" text,
      "order_name" text,
      "row_digest" text not null,
      constraint "inbound_events_source_check" check (source in ('store', 'processor')),
      constraint "inbound_events_state_check" check (${oneOf('state', 'pending', 'done', 'ignored', 'set_aside')}),
      constraint "inbound_events_reason_code_check" check (${oneOf('reason_code', 'unreadable', 'unmapped', 'flagged')})
    )`,
    `create index "inbound_events_pending" on "inbound_events" ("source", "next_attempt_at", "id") where state = 'pending'`,
    `create index "inbound_events_set_aside" on "inbound_events" ("source", "id") where state = 'set_aside'`,
    `create index "inbound_events_set_aside_of_scope" on "inbound_events" ("scope", "received_at") where state = 'set_aside'`,
    'create index "inbound_events_order_id" on "inbound_events" ("order_id") where order_id is not null',
    'create index "inbound_events_order_name" on "inbound_events" ("order_name") where order_name is not null',
    'create index "inbound_events_leased" on "inbound_events" ("scope") where lease_token is not null',
    unique('inbound_events', 'inbound_events_delivery', 'scope, delivery_id, conflict_hash'),
    ...neverDeleted('inbound_events'),
    refuse(
      'update',
      'inbound_events',
      'inbound_events_forward_only',
      `
    (old.state in ('done', 'ignored') and new.state <> old.state)
    or new.scope <> old.scope
    or new.delivery_id <> old.delivery_id
    or new.body_hash <> old.body_hash`,
    ),
    onPostgres(refuse('update', 'inbound_events', 'inbound_events_same_id', 'new.id <> old.id')),

    `create table "inbound_bodies" (
      "event_id" ${id} not null primary key ${onSqlite(`constraint "inbound_bodies_event_id_foreign" references "inbound_events" ("id") on delete restrict`)},
      "encoding" text not null,
      "body" text not null
    )`,
    ...references('inbound_bodies', [{ to: 'inbound_events', by: { event_id: 'id' } }]),
    // PostgreSQL's own compression takes most of the time of an insert: lz4, or none where the server lacks it.
    onPostgres(`do $$ begin
    alter table "inbound_bodies" alter column "body" set compression lz4;
    alter table "sales" alter column "receipt" set compression lz4;
  exception when feature_not_supported then
    alter table "inbound_bodies" alter column "body" set storage external;
  end $$`),

    `create table "operator_deliveries" (
      "scope" text not null,
      "delivery_id" text not null,
      "body_hash" text not null,
      "created_at" bigint not null,
      primary key ("scope", "delivery_id", "body_hash")
    )`,
    ...onlyAdded('operator_deliveries'),

    `create table "outbox_events" (
      "id" ${id} not null primary key,
      "type" text not null,
      "account_id" ${id} not null constraint "outbox_events_account_id_foreign" references "users" ("id") on delete restrict,
      "subject_id" ${id} not null,
      "sequence" integer not null,
      "data" text not null,
      "created_at" bigint not null,
      "distributed_at" bigint,
      "row_digest" text not null
    )`,
    'create index "outbox_events_pending" on "outbox_events" ("sequence", "id") where distributed_at is null',
    unique('outbox_events', 'outbox_events_sequence', 'account_id, subject_id, sequence'),
    // The one update: the channels have taken the event. Until then it stays.
    refuse(
      'update',
      'outbox_events',
      'outbox_events_refuse_update',
      `not (
    old.distributed_at is null and new.distributed_at is not null
    and new.id = old.id and new.type = old.type and new.account_id = old.account_id
    and new.subject_id = old.subject_id and new.sequence = old.sequence and new.data = old.data
    and new.created_at = old.created_at)`,
    ),
    refuse('delete', 'outbox_events', 'outbox_events_refuse_delete', 'old.distributed_at is null'),

    `create table "webhook_endpoints" (
      "id" ${id} not null primary key,
      "account_id" ${id} not null constraint "webhook_endpoints_account_id_foreign" references "users" ("id") on delete restrict,
      "url" text not null,
      "description" text not null,
      "events" text not null,
      "disabled_at" bigint,
      "disabled_reason" text,
      "failing_since" bigint,
      "created_at" bigint not null,
      "updated_at" bigint not null,
      "removed_at" bigint,
      "row_digest" text not null,
      constraint "webhook_endpoints_disabled_reason_check" check (disabled_reason in ('owner', 'operator', 'gone', 'failing'))
    )`,
    'create index "webhook_endpoints_account" on "webhook_endpoints" ("account_id", "id") where removed_at is null',

    `create table "webhook_secrets" (
      "id" ${id} not null primary key,
      "endpoint_id" ${id} not null constraint "webhook_secrets_endpoint_id_foreign" references "webhook_endpoints" ("id") on delete restrict,
      "secret_encrypted" text not null,
      "valid_until" bigint,
      "created_at" bigint not null
    )`,
    'create index "webhook_secrets_endpoint" on "webhook_secrets" ("endpoint_id")',

    `create table "webhook_deliveries" (
      "id" ${id} not null primary key,
      "endpoint_id" ${id} not null constraint "webhook_deliveries_endpoint_id_foreign" references "webhook_endpoints" ("id") on delete restrict,
      "event_id" ${id} not null constraint "webhook_deliveries_event_id_foreign" references "outbox_events" ("id") on delete restrict,
      "subject_id" ${id} not null,
      "sequence" integer not null,
      "state" text not null,
      "attempts" integer not null,
      "due_at" bigint not null,
      "lease_until" bigint not null,
      "lease_token" text,
      "attempted_at" bigint,
      "response_status" integer,
      "response_body" text,
      "error" text,
      "attempt_log" text,
      "created_at" bigint not null,
      "finished_at" bigint,
      "row_digest" text not null,
      constraint "webhook_deliveries_state_check" check (state in ('pending', 'delivered', 'failed'))
    )`,
    `create index "webhook_deliveries_due" on "webhook_deliveries" ("due_at", "id") where state = 'pending'`,
    `create index "webhook_deliveries_order" on "webhook_deliveries" ("endpoint_id", "subject_id", "sequence") where state = 'pending'`,
    'create index "webhook_deliveries_endpoint" on "webhook_deliveries" ("endpoint_id", "id")',
    'create index "webhook_deliveries_event" on "webhook_deliveries" ("event_id")',

    `create table "flags" (
      "id" ${id} not null primary key,
      "kind" text not null,
      "severity" text not null,
      "subject_type" text not null,
      "subject_id" text not null,
      "summary" text not null,
      "evidence" text not null,
      "status" text not null,
      "note" text,
      "created_at" bigint not null,
      "resolved_at" bigint,
      "row_digest" text not null,
      constraint "flags_severity_check" check (severity in ('low', 'medium', 'high')),
      constraint "flags_status_check" check (status in ('open', 'resolved'))
    )`,
    'create index "flags_status" on "flags" ("status", "id")',
    'create index "flags_subject" on "flags" ("subject_id", "kind")',
    `create unique index "flags_one_open" on "flags" ("kind", "subject_type", "subject_id") where status = 'open'`,

    `create table "audit_entries" (
      "id" ${id} not null primary key,
      "actor" text not null,
      "action" text not null,
      "subject_type" text not null,
      "subject_id" text not null,
      "reason" text,
      "before" text,
      "after" text,
      "created_at" bigint not null,
      "row_digest" text not null
    )`,
    'create index "audit_entries_subject" on "audit_entries" ("subject_id", "id")',
    ...onlyAdded('audit_entries', AUDIT_COLUMNS),

    `create table "export_jobs" (
      "id" ${id} not null primary key,
      "user_id" ${id} not null constraint "export_jobs_user_id_foreign" references "users" ("id") on delete restrict,
      "role" text not null,
      "resource" text not null,
      "format" text not null,
      "from_at" bigint,
      "to_at" bigint,
      "state" text not null,
      "due_at" bigint not null,
      "lease_token" text,
      "attempts" integer not null,
      "rows_total" integer,
      "rows_done" integer not null,
      "error" text,
      "file_key" text,
      "created_at" bigint not null,
      "finished_at" bigint,
      "expires_at" bigint,
      "row_digest" text not null,
      constraint "export_jobs_role_check" check (role in ('merchant', 'creator', 'admin')),
      constraint "export_jobs_resource_check" check (resource in ('sales', 'payouts', 'clicks', 'billing_cycles', 'applications')),
      constraint "export_jobs_format_check" check (format in ('csv', 'ndjson')),
      constraint "export_jobs_state_check" check (state in ('queued', 'running', 'succeeded', 'failed')),
      constraint "export_jobs_lease_check" check ((state = 'running') = (lease_token is not null)),
      constraint "export_jobs_expiry_check" check ((state = 'succeeded') = (expires_at is not null))
    )`,
    'create index "export_jobs_user" on "export_jobs" ("user_id", "id")',
    `create index "export_jobs_due" on "export_jobs" ("due_at", "id") where state in ('queued', 'running')`,
    'create index "export_jobs_files" on "export_jobs" ("expires_at") where file_key is not null',
    'create index "export_jobs_finished" on "export_jobs" ("finished_at")',

    `create table "schedule_runs" (
      "name" text not null primary key,
      "started_at" bigint not null,
      "finished_at" bigint,
      "outcome" text,
      "row_digest" text not null
    )`,

    `create table "processes" (
      "id" ${id} not null primary key,
      "host" text not null,
      "pid" integer not null,
      "roles" text not null,
      "money_settings" text not null,
      "seen_at" bigint not null
    )`,

    `create ${onPostgres('unlogged ')} table "rate_limits" (
      "key" text not null primary key,
      "points" integer not null,
      "expire" bigint
    )`,

    `create table "watermarks" (
      "name" text not null primary key,
      "value" text not null
    )`,
  ]
}
