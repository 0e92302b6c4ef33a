import { Migration } from '@mikro-orm/migrations'

/** Earlier decisions keep no scope and no reason. */
export class Migration00024OfferRejections extends Migration {
  override up(): void {
    this.addSql('alter table "offers" add column "rejection_scope" text null')
    this.addSql('alter table "offers" add column "vetting_reason" text null')
  }
}
