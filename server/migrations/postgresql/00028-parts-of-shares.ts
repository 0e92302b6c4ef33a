import { Migration } from '@mikro-orm/migrations'
import { PARTS_OF_SHARES } from '../parts-of-shares.ts'

/**
 * A share of a cycle can be in several payouts, each with a part of it; and an invoice that the processor reports as failed can be
 * requested again.
 */
export class Migration00028PartsOfShares extends Migration {
  override up(): void {
    for (const statement of PARTS_OF_SHARES) this.addSql(statement)
  }
}
