import { Migration } from '@mikro-orm/migrations'
import { ALLOWED_DESTINATION_UPDATE } from '../guards.ts'

/** Allows the encrypted columns of payout destinations to be replaced, so that keys can be rotated. */
export class Migration00019ResealedDestinations extends Migration {
  override up(): void {
    this.addSql('drop trigger if exists "payout_destinations_append_only" on "payout_destinations"')
    this.addSql(`create trigger "payout_destinations_refuse_delete" before delete on "payout_destinations"
      for each row execute function refuse_change()`)
    this.addSql(`create trigger "payout_destinations_refuse_update" before update on "payout_destinations"
      for each row when (not (${ALLOWED_DESTINATION_UPDATE})) execute function refuse_change()`)
  }
}
