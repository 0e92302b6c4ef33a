import { Migration } from '@mikro-orm/migrations'
import { ALLOWED_BILLING_ACCOUNT_UPDATE } from '../guards.ts'

/** The accounts that merchants pay from. */
export class Migration00027BillingAccounts extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `create table "billing_accounts" (
    "id" uuid not null,
    "user_id" uuid not null,
    "kind" text not null,
    "account_encrypted" text not null,
    "account_last4" text not null,
    "created_at" bigint not null,
    primary key ("id"),
    constraint "billing_accounts_kind_check" check (kind in ('iban', 'raast_id'))
  )`,
  `alter table "billing_accounts" add constraint "billing_accounts_user_id_foreign"
    foreign key ("user_id") references "users" ("id") on update no action on delete restrict`,
  'create index "billing_accounts_user" on "billing_accounts" ("user_id", "created_at")',
  `create trigger "billing_accounts_refuse_delete" before delete on "billing_accounts"
    for each row execute function refuse_change()`,
  `create trigger "billing_accounts_refuse_update" before update on "billing_accounts"
    for each row when (not (${ALLOWED_BILLING_ACCOUNT_UPDATE})) execute function refuse_change()`,
  `create trigger "billing_accounts_no_truncate" before truncate on "billing_accounts"
    for each statement execute function refuse_change()`,
]
