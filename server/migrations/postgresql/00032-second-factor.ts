import { Migration } from '@mikro-orm/migrations'
import { secondFactorStatements } from '../second-factor.ts'

/** Where sessions are used from, and second factors with their recovery codes. */
export class Migration00032SecondFactor extends Migration {
  override up(): void {
    for (const statement of secondFactorStatements('uuid')) this.addSql(statement)
  }
}
