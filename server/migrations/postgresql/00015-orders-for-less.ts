import { Migration } from '@mikro-orm/migrations'

/**
 * What rows refer to is looked up once for all that refer to the same: three postings to an entry, hundreds of sales to a cycle.
 */
export class Migration00015OrdersForLess extends Migration {
  override up(): void {
    for (const check of CHECKS) this.addSql(checkFunction(check))
  }
}

interface Reference {
  to: string
  /** Its columns by those of the row that refers to it; a row refers to nothing while the first of them is null. */
  by: Record<string, string>
}

const CHECKS: { table: string; references: Reference[] }[] = [
  { table: 'ledger_postings', references: [{ to: 'ledger_entries', by: { entry_id: 'id' } }] },
  {
    table: 'sales',
    references: [
      { to: 'stores', by: { store_id: 'id', merchant_id: 'merchant_id' } },
      { to: 'billing_cycles', by: { billing_cycle_id: 'id', merchant_id: 'merchant_id' } },
      {
        to: 'affiliate_links',
        by: {
          link_id: 'id',
          merchant_id: 'merchant_id',
          offer_id: 'offer_id',
          creator_id: 'creator_id',
        },
      },
    ],
  },
]

/** A plan is kept for as long as a connection: one that was made while a table was small must not read all of it later. */
const BY_KEYS = ['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin']

function checkFunction({ table, references }: (typeof CHECKS)[number]): string {
  const checks = references.map(({ to, by }) => {
    const columns = Object.keys(by)
    const same = Object.entries(by).map(([column, key]) => `found.${key} = given.${column}`)
    return `
      if exists (
        select from (select distinct ${columns.join(', ')} from added where ${columns[0]} is not null) as given
        where not exists (select from ${to} as found where ${same.join(' and ')})
      ) then
        raise exception 'rows added to ${table} refer to nothing in ${to}' using errcode = 'foreign_key_violation';
      end if;`
  })
  return `create or replace function refuse_lost_${table}() returns trigger language plpgsql
    ${BY_KEYS.map((setting) => `set ${setting} = off`).join(' ')}
    as $$ begin ${checks.join('')} return null; end $$`
}
