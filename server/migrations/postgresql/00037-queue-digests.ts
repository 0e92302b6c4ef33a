import { Migration } from '@mikro-orm/migrations'
import { DIGESTED_QUEUES } from '../../platform/crypto/digested-rows.ts'

/** Rows that cause something are bound to APP_KEY. */
export class Migration00037QueueDigests extends Migration {
  override up(): void {
    for (const table of Object.keys(DIGESTED_QUEUES))
      this.addSql(`alter table "${table}" add column "row_digest" text not null default ''`)
  }
}
