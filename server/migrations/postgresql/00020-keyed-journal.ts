import { Migration } from '@mikro-orm/migrations'
import { FORBIDDEN_HEAD_UPDATE, UNKEYED_POSTGRESQL } from '../guards.ts'

/** New entries and seals must name a key that is not retired, and heads must carry a MAC. What is there stays as it is. */
export class Migration00020KeyedJournal extends Migration {
  override up(): void {
    this.addSql('alter table "ledger_heads" add column "mac" text null')
    this.addSql('alter table "ledger_seals" add column "retires" text null')
    this.addSql('alter table "ledger_seals" add constraint "ledger_seals_retires_unique" unique ("retires")')
    this.addSql('alter table "ledger_seal_heads" drop constraint if exists "ledger_seal_heads_head"')
    this.addSql('create index "ledger_seal_heads_head" on "ledger_seal_heads" ("ledger_id", "sequence")')
    this.addSql('drop trigger if exists "ledger_heads_forward_only" on "ledger_heads"')
    this.addSql(`create trigger "ledger_heads_forward_only" before update on "ledger_heads"
      for each row when (${FORBIDDEN_HEAD_UPDATE}) execute function refuse_change()`)
    for (const [table, column] of [
      ['ledger_entries', 'hash'],
      ['ledger_seals', 'digest'],
    ] as const) {
      this.addSql(`create function "${table}_keyed"() returns trigger language plpgsql as
        'begin if exists (select from added where ${UNKEYED_POSTGRESQL(`added.${column}`)}) then
          raise exception ''rows of ${table} are made with a key that is in use''; end if; return null; end'`)
      // Once a statement, since entries come by the hundred.
      this.addSql(`create trigger "${table}_keyed" after insert on "${table}"
        referencing new table as added for each statement execute function "${table}_keyed"()`)
    }
  }
}
