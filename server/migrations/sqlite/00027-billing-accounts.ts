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
    "id" text not null primary key,
    "user_id" text not null,
    "kind" text not null,
    "account_encrypted" text not null,
    "account_last4" text not null,
    "created_at" bigint not null,
    constraint "billing_accounts_user_id_foreign" foreign key ("user_id") references "users" ("id") on update no action on delete restrict,
    constraint "billing_accounts_kind_check" check (kind in ('iban', 'raast_id'))
  )`,
  'create index "billing_accounts_user" on "billing_accounts" ("user_id", "created_at")',
  `create trigger "billing_accounts_refuse_delete" before delete on "billing_accounts"
    begin select raise(abort, 'rows of billing_accounts never go'); end`,
  `create trigger "billing_accounts_refuse_update" before update on "billing_accounts"
    when not (${ALLOWED_BILLING_ACCOUNT_UPDATE})
    begin select raise(abort, 'this change of billing_accounts is refused'); end`,
]
