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
  `create trigger "operator_deliveries_append_only" before update or delete on "operator_deliveries"
    for each row execute function refuse_change()`,
  `create trigger "operator_deliveries_no_truncate" before truncate on "operator_deliveries"
    for each statement execute function refuse_change()`,
  `create index "inbound_events_set_aside" on "inbound_events" ("source", "id") where state = 'set_aside'`,
]
