import { sql } from 'kysely'
import { type Invariant, sqlInvariant } from './invariant.ts'

/** What must hold inside the journal, whatever it is about. */
export const JOURNAL_INVARIANTS: Invariant[] = [
  sqlInvariant({
    name: 'entries-balance',
    statement: 'Each journal entry has at least two postings, and they sum to zero.',
    table: 'ledger_entries',
    // Postings are summed in the order of their key before the join, which then has one row for each entry.
    breaches: (scope) => sql`
      select entry.kind || ' entry ' || entry.id as subject,
        'postings sum to ' || coalesce(posted.total, 0) || ' paisa over ' || coalesce(posted.legs, 0) || ' legs' as detail
      from ledger_entries as entry
      left join (
        select entry_id, sum(amount) as total, count(*) as legs
        from (select entry_id, amount from ledger_postings where ${scope.isNew('entry_id')} order by entry_id) as posting
        group by entry_id
      ) as posted on posted.entry_id = entry.id
      where ${scope.isNew('entry.id')} and (posted.entry_id is null or posted.total <> 0 or posted.legs < 2)`,
  }),
  sqlInvariant({
    name: 'books-balance',
    statement: 'The sum over all accounts is zero.',
    table: 'ledger_postings',
    breaches: (scope) => sql`
      select 'journal' as subject, 'all postings sum to ' || sum(amount) || ' paisa' as detail
      from ledger_postings where ${scope.isNew('entry_id')} having sum(amount) <> 0`,
  }),
  sqlInvariant({
    // `sales-in-journal` checks that the sale is accepted; keys are enough here.
    name: 'entries-have-subjects',
    statement: 'Each journal entry is about a sale, credit, billing cycle or payout that exists.',
    table: 'ledger_entries',
    breaches: (scope) => sql`
      select entry.kind || ' entry ' || entry.id as subject, 'its subject ' || entry.subject_id || ' does not exist' as detail
      from ledger_entries as entry
      where ${scope.isNew('entry.id')} and not exists (
        select 1 from (
          select id, 'sale_accepted' as kind from sales
          union all select id, 'credit_granted' from credits
          union all select id, 'cycle_closed' from billing_cycles
          union all select id, 'cycle_charged' from billing_cycles
          union all select id, 'payout_created' from payouts
          union all select id, 'payout_confirmed' from payouts
          union all select id, 'payout_failed' from payouts
        ) as known where known.id = entry.subject_id and known.kind = entry.kind
      )`,
  }),
  sqlInvariant({
    name: 'entries-dated',
    statement: 'Each journal entry carries the very moment of the change that it stands for.',
    table: 'ledger_entries',
    breaches: (scope) => sql`
      select kind || ' entry ' || id as subject,
        'dated ' || entered_at || ', its subject ' || subject_id || ' says ' || coalesce(cast(changed_at as text), 'no time') as detail
      from (
        select entry.id, entry.kind, entry.subject_id, entry.created_at as entered_at,
            coalesce(sale.decided_at, sale.created_at) as changed_at
          from ledger_entries as entry join sales as sale on sale.id = entry.subject_id
          where entry.kind = 'sale_accepted' and ${scope.isNew('entry.id')}
        union all
        select entry.id, entry.kind, entry.subject_id, entry.created_at, credit.created_at
          from ledger_entries as entry join credits as credit on credit.id = entry.subject_id
          where entry.kind = 'credit_granted' and ${scope.isNew('entry.id')}
        union all
        select entry.id, entry.kind, entry.subject_id, entry.created_at,
            case entry.kind when 'cycle_closed' then cycle.closed_at else cycle.charged_at end
          from ledger_entries as entry join billing_cycles as cycle on cycle.id = entry.subject_id
          where entry.kind in ('cycle_closed', 'cycle_charged') and ${scope.isNew('entry.id')}
        union all
        select entry.id, entry.kind, entry.subject_id, entry.created_at,
            case entry.kind when 'payout_created' then payout.created_at else payout.settled_at end
          from ledger_entries as entry join payouts as payout on payout.id = entry.subject_id
          where entry.kind in ('payout_created', 'payout_confirmed', 'payout_failed') and ${scope.isNew('entry.id')}
      ) as dated
      where changed_at is null or changed_at <> entered_at`,
  }),
  sqlInvariant({
    name: 'accounts-have-owners',
    statement: "Each posting's account belongs to a user, or to the platform itself.",
    table: 'ledger_postings',
    breaches: (scope) => sql`
      select 'entry ' || posting.entry_id as subject, posting.account || ' of unknown owner ' || posting.owner_id as detail
      from ledger_postings as posting
      left join users on users.id = posting.owner_id
      where ${scope.isNew('posting.entry_id')} and users.id is null and posting.owner_id <> '00000000-0000-0000-0000-000000000000'`,
  }),
]
