import { Migration } from '@mikro-orm/migrations'
import { ALLOWED_OUTBOX_UPDATE } from '../guards.ts'

/** Events for accounts, and their delivery to the accounts' webhook endpoints. */
export class Migration00031Outbox extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `create table "outbox_events" (
    "id" uuid not null,
    "type" text not null,
    "account_id" uuid not null,
    "subject_id" uuid not null,
    "sequence" int not null,
    "data" text not null,
    "created_at" bigint not null,
    "distributed_at" bigint null,
    primary key ("id")
  )`,
  `alter table "outbox_events" add constraint "outbox_events_account_id_foreign" foreign key ("account_id") references "users" ("id") on update no action on delete restrict`,
  'alter table "outbox_events" add constraint "outbox_events_sequence" unique ("account_id", "subject_id", "sequence")',
  'create index "outbox_events_pending" on "outbox_events" ("sequence", "id") where distributed_at is null',
  `create trigger "outbox_events_refuse_update" before update on "outbox_events"
    for each row when (not (${ALLOWED_OUTBOX_UPDATE})) execute function refuse_change()`,
  `create trigger "outbox_events_refuse_delete" before delete on "outbox_events"
    for each row when (old.distributed_at is null) execute function refuse_change()`,
  `create table "webhook_endpoints" (
    "id" uuid not null,
    "account_id" uuid not null,
    "url" text not null,
    "description" text not null,
    "events" text not null,
    "disabled_at" bigint null,
    "disabled_reason" text null,
    "failing_since" bigint null,
    "created_at" bigint not null,
    "updated_at" bigint not null,
    "removed_at" bigint null,
    primary key ("id"),
    constraint "webhook_endpoints_disabled_reason_check" check (disabled_reason in ('owner', 'operator', 'gone', 'failing'))
  )`,
  `alter table "webhook_endpoints" add constraint "webhook_endpoints_account_id_foreign" foreign key ("account_id") references "users" ("id") on update no action on delete restrict`,
  'create index "webhook_endpoints_account" on "webhook_endpoints" ("account_id", "id") where removed_at is null',
  `create table "webhook_secrets" (
    "id" uuid not null,
    "endpoint_id" uuid not null,
    "secret_encrypted" text not null,
    "valid_until" bigint null,
    "created_at" bigint not null,
    primary key ("id")
  )`,
  `alter table "webhook_secrets" add constraint "webhook_secrets_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on update no action on delete restrict`,
  'create index "webhook_secrets_endpoint" on "webhook_secrets" ("endpoint_id")',
  `create table "webhook_deliveries" (
    "id" uuid not null,
    "endpoint_id" uuid not null,
    "event_id" uuid not null,
    "subject_id" uuid not null,
    "sequence" int not null,
    "state" text not null,
    "attempts" int not null,
    "due_at" bigint not null,
    "lease_until" bigint not null,
    "lease_token" text null,
    "attempted_at" bigint null,
    "response_status" int null,
    "response_body" text null,
    "error" text null,
    "created_at" bigint not null,
    "finished_at" bigint null,
    primary key ("id"),
    constraint "webhook_deliveries_state_check" check (state in ('pending', 'delivered', 'failed'))
  )`,
  `alter table "webhook_deliveries" add constraint "webhook_deliveries_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on update no action on delete restrict`,
  `alter table "webhook_deliveries" add constraint "webhook_deliveries_event_id_foreign" foreign key ("event_id") references "outbox_events" ("id") on update no action on delete restrict`,
  `create index "webhook_deliveries_due" on "webhook_deliveries" ("due_at", "id") where state = 'pending'`,
  `create index "webhook_deliveries_order" on "webhook_deliveries" ("endpoint_id", "subject_id", "sequence") where state = 'pending'`,
  'create index "webhook_deliveries_endpoint" on "webhook_deliveries" ("endpoint_id", "id")',
  'create index "webhook_deliveries_event" on "webhook_deliveries" ("event_id")',
]
