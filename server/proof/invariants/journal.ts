import { sql } from 'kysely'
import { type Invariant, sqlInvariant } from './invariant.ts'

/** What must hold inside the journal, whatever it is about. */
export const JOURNAL_INVARIANTS: Invariant[] = [
  sqlInvariant({
    name: 'entries-balance',
    statement: 'Each journal entry has at least two postings, and they sum to zero.',
    table: 'ledger_entries',
    breaches: sql`
      select entry.kind || ' entry ' || entry.id as subject,
        'postings sum to ' || coalesce(sum(posting.amount), 0) || ' paisa over ' || count(posting.entry_id) || ' legs' as detail
      from ledger_entries as entry
      left join ledger_postings as posting on posting.entry_id = entry.id
      group by entry.id, entry.kind
      having coalesce(sum(posting.amount), 0) <> 0 or count(posting.entry_id) < 2`,
  }),
  sqlInvariant({
    name: 'books-balance',
    statement: 'The sum over all accounts is zero.',
    table: 'ledger_postings',
    breaches: sql`
      select 'journal' as subject, 'all postings sum to ' || sum(amount) || ' paisa' as detail
      from ledger_postings having sum(amount) <> 0`,
  }),
  sqlInvariant({
    // Whether the sale is an accepted one is asked by `sales-in-journal`: here the keys alone answer.
    name: 'entries-have-subjects',
    statement: 'Each journal entry is about a sale, credit, billing cycle or payout that exists.',
    table: 'ledger_entries',
    breaches: sql`
      select entry.kind || ' entry ' || entry.id as subject, 'its subject ' || entry.subject_id || ' does not exist' as detail
      from ledger_entries as entry
      where not exists (
        select 1 from sales where entry.kind = 'sale_accepted' and sales.id = entry.subject_id
        union all select 1 from credits where entry.kind = 'credit_granted' and credits.id = entry.subject_id
        union all select 1 from billing_cycles where entry.kind in ('cycle_closed', 'cycle_charged') and billing_cycles.id = entry.subject_id
        union all select 1 from payouts where entry.kind in ('payout_created', 'payout_confirmed', 'payout_failed') and payouts.id = entry.subject_id
      )`,
  }),
  sqlInvariant({
    name: 'entries-dated',
    statement: 'Each journal entry carries the very moment of the change that it stands for.',
    table: 'ledger_entries',
    breaches: sql`
      select kind || ' entry ' || id as subject,
        'dated ' || entered_at || ', its subject ' || subject_id || ' says ' || coalesce(cast(changed_at as text), 'no time') as detail
      from (
        select entry.id, entry.kind, entry.subject_id, entry.created_at as entered_at, sale.created_at as changed_at
          from ledger_entries as entry join sales as sale on sale.id = entry.subject_id
          where entry.kind = 'sale_accepted'
        union all
        select entry.id, entry.kind, entry.subject_id, entry.created_at, credit.created_at
          from ledger_entries as entry join credits as credit on credit.id = entry.subject_id
          where entry.kind = 'credit_granted'
        union all
        select entry.id, entry.kind, entry.subject_id, entry.created_at,
            case entry.kind when 'cycle_closed' then cycle.closed_at else cycle.charged_at end
          from ledger_entries as entry join billing_cycles as cycle on cycle.id = entry.subject_id
          where entry.kind in ('cycle_closed', 'cycle_charged')
        union all
        select entry.id, entry.kind, entry.subject_id, entry.created_at,
            case entry.kind when 'payout_created' then payout.created_at else payout.settled_at end
          from ledger_entries as entry join payouts as payout on payout.id = entry.subject_id
          where entry.kind in ('payout_created', 'payout_confirmed', 'payout_failed')
      ) as dated
      where changed_at is null or changed_at <> entered_at`,
  }),
  sqlInvariant({
    name: 'accounts-have-owners',
    statement: "Each posting's account belongs to a user, or to the platform itself.",
    table: 'ledger_postings',
    breaches: sql`
      select 'entry ' || posting.entry_id as subject, posting.account || ' of unknown owner ' || posting.owner_id as detail
      from ledger_postings as posting
      left join users on users.id = posting.owner_id
      where users.id is null and posting.owner_id <> '00000000-0000-0000-0000-000000000000'`,
  }),
]
