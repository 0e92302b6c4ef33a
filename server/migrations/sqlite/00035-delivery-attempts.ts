import { Migration } from '@mikro-orm/migrations'

/** Each attempt of a webhook delivery, not only the last. */
export class Migration00035DeliveryAttempts extends Migration {
  override up(): void {
    this.addSql('alter table "webhook_deliveries" add column "attempt_log" text null')
  }
}
