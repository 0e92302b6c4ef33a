import { Migration } from '@mikro-orm/migrations'

/**
 * What sales and postings refer to is looked up once a statement, no longer row by row with a lock on each: that was a fifth of
 * the server's work on an order. More is asked than by the foreign keys that go: a sale's store, its cycle and its link are
 * its merchant's. The locks kept what is referred to from going, which here nothing of it can do, nor get another key.
 */
export class Migration00012CheckedAtOnce extends Migration {
  override up(): void {
    this.addSql(`create trigger "stores_refuse_delete" before delete on "stores"
      for each row execute function refuse_change()`)
    this.addSql(`create trigger "stores_no_truncate" before truncate on "stores"
      for each statement execute function refuse_change()`)
    this.addSql(`create trigger "stores_same_owner" before update on "stores"
      for each row when (new.id <> old.id or new.merchant_id <> old.merchant_id) execute function refuse_change()`)
    this.addSql(`create trigger "billing_cycles_same_id" before update on "billing_cycles"
      for each row when (new.id <> old.id) execute function refuse_change()`)
    for (const { table, refers, keys } of CHECKS) {
      this.addSql(checkFunction(table, refers))
      this.addSql(`create trigger "${table}_refer" after insert on "${table}"
        referencing new table as added for each statement execute function refuse_lost_${table}()`)
      for (const key of keys) this.addSql(`alter table "${table}" drop constraint "${table}_${key}_foreign"`)
    }
  }
}

interface Check {
  table: string
  /** Each: what has to be there, and which of the rows must have it. */
  refers: { to: string; of: string; when: string }[]
  keys: string[]
}

const CHECKS: Check[] = [
  {
    table: 'ledger_postings',
    refers: [{ to: 'ledger_entries', of: 'found.id = added.entry_id', when: 'true' }],
    keys: ['entry_id'],
  },
  {
    table: 'sales',
    refers: [
      {
        to: 'stores',
        of: 'found.id = added.store_id and found.merchant_id = added.merchant_id',
        when: 'true',
      },
      {
        to: 'billing_cycles',
        of: 'found.id = added.billing_cycle_id and found.merchant_id = added.merchant_id',
        when: 'added.billing_cycle_id is not null',
      },
      {
        to: 'affiliate_links',
        of: `found.id = added.link_id and found.merchant_id = added.merchant_id
          and found.offer_id = added.offer_id and found.creator_id = added.creator_id`,
        when: 'added.link_id is not null',
      },
    ],
    keys: ['store_id', 'merchant_id', 'billing_cycle_id'],
  },
]

/** A plan is kept for as long as a connection: one that was made while a table was small must not read all of it later. */
const BY_KEYS = ['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin']

function checkFunction(table: string, refers: Check['refers']): string {
  const checks = refers.map(
    ({ to, of, when }) => `
      if exists (select from added where ${when} and not exists (select from ${to} as found where ${of})) then
        raise exception 'rows added to ${table} refer to nothing in ${to}' using errcode = 'foreign_key_violation';
      end if;`,
  )
  return `create function refuse_lost_${table}() returns trigger language plpgsql
    ${BY_KEYS.map((setting) => `set ${setting} = off`).join(' ')}
    as $$ begin ${checks.join('')} return null; end $$`
}
