import { Migration } from '@mikro-orm/migrations'
import { DIGESTED_TABLES } from '../../platform/database/protected-tables.ts'

/** The keyed digest of each row of the protected tables. */
export class Migration00036RowDigests extends Migration {
  override up(): void {
    for (const table of Object.keys(DIGESTED_TABLES)) {
      this.addSql(`alter table "${table}" add column "row_digest" text not null default ''`)
    }
  }
}
