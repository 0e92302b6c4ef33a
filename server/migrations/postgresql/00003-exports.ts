import { Migration } from '@mikro-orm/migrations'

export class Migration00003Exports extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `create table "export_jobs" (
    "id" uuid not null,
    "user_id" uuid not null,
    "role" text not null,
    "resource" text not null,
    "format" text not null,
    "from_at" bigint null,
    "to_at" bigint null,
    "state" text not null,
    "due_at" bigint not null,
    "lease_token" text null,
    "attempts" int not null,
    "rows_total" int null,
    "rows_done" int not null,
    "error" text null,
    "file_key" text null,
    "created_at" bigint not null,
    "finished_at" bigint null,
    "expires_at" bigint null,
    primary key ("id")
  )`,
  `create index "export_jobs_user" on "export_jobs" ("user_id", "id")`,
  `create index "export_jobs_due" on "export_jobs" ("due_at", "id") where state in ('queued', 'running')`,
  `create index "export_jobs_files" on "export_jobs" ("expires_at") where file_key is not null`,
  `create index "export_jobs_finished" on "export_jobs" ("finished_at")`,
  `alter table "export_jobs" add constraint "export_jobs_role_check" check (role in ('merchant', 'creator', 'admin'))`,
  `alter table "export_jobs" add constraint "export_jobs_resource_check" check (resource in ('sales', 'payouts', 'clicks', 'billing_cycles', 'applications'))`,
  `alter table "export_jobs" add constraint "export_jobs_format_check" check (format in ('csv', 'ndjson'))`,
  `alter table "export_jobs" add constraint "export_jobs_state_check" check (state in ('queued', 'running', 'succeeded', 'failed'))`,
  `alter table "export_jobs" add constraint "export_jobs_lease_check" check ((state = 'running') = (lease_token is not null))`,
  `alter table "export_jobs" add constraint "export_jobs_expiry_check" check ((state = 'succeeded') = (expires_at is not null))`,
  `alter table "export_jobs" add constraint "export_jobs_user_id_foreign" foreign key ("user_id") references "users" ("id") on update no action on delete restrict`,
]
