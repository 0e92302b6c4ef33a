import { Migration } from '@mikro-orm/migrations'
import { ALLOWED_DESTINATION_UPDATE } from '../guards.ts'

/** Allows the encrypted columns of payout destinations to be replaced, so that keys can be rotated. */
export class Migration00019ResealedDestinations extends Migration {
  override up(): void {
    this.addSql('drop trigger if exists "payout_destinations_refuse_update"')
    this.addSql(`create trigger "payout_destinations_refuse_update" before update on "payout_destinations"
      when not (${ALLOWED_DESTINATION_UPDATE})
      begin select raise(abort, 'this change of payout_destinations is refused'); end`)
  }
}
