import { Migration } from '@mikro-orm/migrations'

/**
 * The index of a cycle's sales holds what the audits of totals and shares sum up. From the former one each of its entries led to the
 * table, page by page in no order, which grew many times dearer once the pages of a cycle were more than SQLite keeps.
 * PostgreSQL reads all of the table and sums by hash: there it would only make each sale dearer to write.
 */
export class Migration00013CycleSums extends Migration {
  override up(): void {
    this.addSql('drop index "sales_cycle"')
    this.addSql(
      'create index "sales_cycle" on "sales" ("billing_cycle_id", "creator_id", "commission", "platform_fee")',
    )
  }
}
