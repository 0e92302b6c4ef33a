import { Migration } from '@mikro-orm/migrations'
import { FORBIDDEN_HEAD_UPDATE, UNKEYED_SQLITE } from '../guards.ts'

/** New entries and seals must name a key that is not retired, and heads must carry a MAC. What is there stays as it is. */
export class Migration00020KeyedJournal extends Migration {
  override up(): void {
    this.addSql('alter table "ledger_heads" add column "mac" text null')
    this.addSql('alter table "ledger_seals" add column "retires" text null')
    this.addSql('create unique index "ledger_seals_retires_unique" on "ledger_seals" ("retires")')
    this.addSql('drop index if exists "ledger_seal_heads_head"')
    this.addSql('create index "ledger_seal_heads_head" on "ledger_seal_heads" ("ledger_id", "sequence")')
    this.addSql('drop trigger if exists "ledger_heads_forward_only"')
    this.addSql(`create trigger "ledger_heads_forward_only" before update on "ledger_heads"
      when ${FORBIDDEN_HEAD_UPDATE} begin select raise(abort, 'this change of ledger_heads goes backwards'); end`)
    for (const [table, column] of [
      ['ledger_entries', 'hash'],
      ['ledger_seals', 'digest'],
    ] as const) {
      this.addSql(`create trigger "${table}_keyed" before insert on "${table}" when ${UNKEYED_SQLITE(`new.${column}`)}
        begin select raise(abort, 'rows of ${table} are made with a key that is in use'); end`)
    }
  }
}
