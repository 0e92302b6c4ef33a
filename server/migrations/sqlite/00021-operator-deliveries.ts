import { Migration } from '@mikro-orm/migrations'

/** Deliveries that the command line sends in the name of a store or the processor, and an index of events set aside. */
export class Migration00021OperatorDeliveries extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `create table "operator_deliveries" (
    "scope" text not null,
    "delivery_id" text not null,
    "body_hash" text not null,
    "created_at" bigint not null,
    primary key ("scope", "delivery_id", "body_hash")
  )`,
  ...['update', 'delete'].map(
    (
      change,
    ) => `create trigger "operator_deliveries_refuse_${change}" before ${change} on "operator_deliveries"
      begin select raise(abort, 'rows of operator_deliveries are only ever added'); end`,
  ),
  `create index "inbound_events_set_aside" on "inbound_events" ("source", "id") where state = 'set_aside'`,
]
