import { Migration } from '@mikro-orm/migrations'
import { APPEND_ONLY, CYCLE_OVERLAPS, FORBIDDEN_UPDATES, NEVER_DELETED } from '../guards.ts'

export class Migration00002Guards extends Migration {
  override up(): void {
    this.addSql(`create function refuse_change() returns trigger language plpgsql as
      'begin raise exception ''this change of % is refused'', tg_table_name; end'`)
    for (const table of APPEND_ONLY) {
      this.addSql(`create trigger "${table}_append_only" before update or delete on "${table}"
        for each row execute function refuse_change()`)
    }
    for (const table of NEVER_DELETED) {
      this.addSql(`create trigger "${table}_refuse_delete" before delete on "${table}"
        for each row execute function refuse_change()`)
    }
    for (const table of [...APPEND_ONLY, ...NEVER_DELETED]) {
      this.addSql(`create trigger "${table}_no_truncate" before truncate on "${table}"
        for each statement execute function refuse_change()`)
    }
    for (const [table, condition] of Object.entries(FORBIDDEN_UPDATES)) {
      this.addSql(`create trigger "${table}_forward_only" before update on "${table}"
        for each row when (${condition}) execute function refuse_change()`)
    }
    this.addSql(`create function refuse_overlap() returns trigger language plpgsql as
      'begin if ${CYCLE_OVERLAPS} then raise exception ''cycles of a merchant never overlap''; end if; return null; end'`)
    this.addSql(`create trigger "billing_cycles_no_overlap" after insert or update of period_start, period_end
      on "billing_cycles" for each row execute function refuse_overlap()`)
  }
}
