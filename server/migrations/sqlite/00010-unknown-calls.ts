import { Migration } from '@mikro-orm/migrations'

/** Of the attempts that wait now nobody noted when their outcome became unknown: a refusal of theirs counts at once, as it did. */
export class Migration00010UnknownCalls extends Migration {
  override up(): void {
    this.addSql('alter table "processor_attempts" add column "unknown_at" bigint null')
  }
}
