import { Migration } from '@mikro-orm/migrations'

/**
 * The words that each accepted order writes, checked one by one, as 00009 does for clicks: for a list of more than two SQLite builds an
 * index of it for each row. Only the schema's text is written; the rows are read through once.
 */
export class Migration00011JournalWords extends Migration {
  override up(): void {
    for (const [table, column, words] of WORDS) {
      const name = `${table}_${column}_check`
      const condition = words.map((word) => `${column} = '${word}'`).join(' or ')
      this.addSql(`alter table "${table}" drop constraint "${name}"`)
      this.addSql(`alter table "${table}" add constraint "${name}" check (${condition})`)
    }
  }
}

const WORDS: [table: string, column: string, words: string[]][] = [
  [
    'ledger_entries',
    'kind',
    [
      'sale_accepted',
      'credit_granted',
      'cycle_closed',
      'cycle_charged',
      'payout_created',
      'payout_confirmed',
      'payout_failed',
    ],
  ],
  [
    'ledger_postings',
    'account',
    [
      'merchant_unbilled',
      'merchant_receivable',
      'creator_pending',
      'creator_released',
      'payouts_in_transit',
      'platform_fees',
      'platform_credits',
      'processor_clearing',
    ],
  ],
  ['inbound_events', 'state', ['pending', 'done', 'ignored', 'set_aside']],
]
