import { Migration } from '@mikro-orm/migrations'

/** The addresses from which each account has logged in, as keyed hashes. */
export class Migration00018LoginAddresses extends Migration {
  override up(): void {
    this.addSql(`create table "login_addresses" (
      "user_id" text not null,
      "address_hash" text not null,
      "used_at" bigint not null,
      primary key ("user_id", "address_hash"),
      constraint "login_addresses_user_id_foreign" foreign key ("user_id") references "users" ("id") on update no action on delete restrict
    )`)
  }
}
