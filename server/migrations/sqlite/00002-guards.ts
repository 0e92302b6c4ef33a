import { Migration } from '@mikro-orm/migrations'
import { APPEND_ONLY, CYCLE_OVERLAPS, FORBIDDEN_UPDATES, NEVER_DELETED } from '../guards.ts'

export class Migration00002Guards extends Migration {
  override up(): void {
    for (const table of APPEND_ONLY) {
      for (const change of ['update', 'delete']) {
        this.addSql(`create trigger "${table}_refuse_${change}" before ${change} on "${table}"
          begin select raise(abort, 'rows of ${table} are only ever added'); end`)
      }
    }
    for (const table of NEVER_DELETED) {
      this.addSql(`create trigger "${table}_refuse_delete" before delete on "${table}"
        begin select raise(abort, 'rows of ${table} never go'); end`)
    }
    for (const [table, condition] of Object.entries(FORBIDDEN_UPDATES)) {
      this.addSql(`create trigger "${table}_forward_only" before update on "${table}" when ${condition}
        begin select raise(abort, 'this change of ${table} goes backwards'); end`)
    }
    for (const change of ['insert', 'update of period_start, period_end']) {
      this.addSql(`create trigger "billing_cycles_no_overlap_${change.slice(0, 6)}" after ${change} on "billing_cycles"
        when ${CYCLE_OVERLAPS} begin select raise(abort, 'cycles of a merchant never overlap'); end`)
    }
  }
}
