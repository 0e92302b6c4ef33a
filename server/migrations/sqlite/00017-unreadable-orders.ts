import { Migration } from '@mikro-orm/migrations'

/** What could be read of an order that was set aside as unreadable, and the indexes by which such events are found and counted. */
export class Migration00017UnreadableOrders extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  'alter table "inbound_events" add column "order_id" text',
  'alter table "inbound_events" add column "order_name" text',
  `create index "inbound_events_set_aside_of_scope" on "inbound_events" ("scope", "received_at") where state = 'set_aside'`,
  'create index "inbound_events_order_id" on "inbound_events" ("order_id") where order_id is not null',
  'create index "inbound_events_order_name" on "inbound_events" ("order_name") where order_name is not null',
]
