import { sql } from 'kysely'
import { LARGEST_CYCLE as MOST_OF_CYCLE } from '../billing/close-cycle.rule.ts'
import { LARGEST_ORDER as MOST_OF_ORDER } from '../shopify/fields.ts'
import { type Invariant, sqlInvariant } from './invariant.ts'

const LARGEST_ORDER = sql.lit(MOST_OF_ORDER)
const LARGEST_CYCLE = sql.lit(MOST_OF_CYCLE)
const EXACT = sql.lit(Number.MAX_SAFE_INTEGER)

/** What must hold between billing cycles, their sales, credits and the journal. */
export const BILLING_INVARIANTS: Invariant[] = [
  sqlInvariant({
    name: 'amounts-in-range',
    statement:
      'Orders and cycles are within their bounds, and every amount is exact: at most 2^53 - 1 paisa.',
    table: 'billing_cycles',
    breaches: sql`
      select what || ' ' || id as subject, 'holds ' || amount || ' paisa, at most ' || most as detail from (
        select 'sale' as what, id, net_amount as amount, ${LARGEST_ORDER} as most from sales
        union all select 'cycle', id, commission_total + fee_total, ${LARGEST_CYCLE} from billing_cycles
        union all select 'cycle', id, amount_due + credit_total, ${LARGEST_CYCLE} from billing_cycles
        union all select 'share of cycle', billing_cycle_id, commission, ${LARGEST_CYCLE} from billing_cycle_shares
        union all select 'credit', id, amount, ${EXACT} from credits
        union all select 'payout', id, amount, ${EXACT} from payouts
        union all select 'attempt', id, amount, ${EXACT} from processor_attempts
        union all select 'entry', entry_id, abs(amount), ${EXACT} from ledger_postings
      ) as held where amount > most`,
  }),
  sqlInvariant({
    name: 'cycles-tile-time',
    statement: "A merchant's cycles follow each other without gap or overlap, and only the last may be open.",
    table: 'billing_cycles',
    breaches: sql`
      select 'cycle ' || id as subject, case
          when former_end <> period_start then 'begins at ' || period_start || ', the one before ends at ' || former_end
          else 'is open and not the last' end as detail
      from (
        select id, state, period_start,
          lag(period_end) over (partition by merchant_id order by period_start) as former_end,
          lead(id) over (partition by merchant_id order by period_start) as next_id
        from billing_cycles
      ) as cycle
      where former_end <> period_start or (state = 'open' and next_id is not null)`,
  }),
  sqlInvariant({
    name: 'cycle-totals',
    statement: "A cycle's totals are the sums of its accepted sales.",
    table: 'billing_cycles',
    breaches: sql`
      select 'cycle ' || cycle.id as subject,
        'holds ' || cycle.sales_count || ' sales, commission ' || cycle.commission_total || ', fee ' || cycle.fee_total
          || '; its sales: ' || coalesce(lines.n, 0) || ', ' || coalesce(lines.commission, 0) || ', ' || coalesce(lines.fee, 0) as detail
      from billing_cycles as cycle
      left join (
        select billing_cycle_id, count(*) as n, sum(commission) as commission, sum(platform_fee) as fee
        from sales where billing_cycle_id is not null group by billing_cycle_id
      ) as lines on lines.billing_cycle_id = cycle.id
      where cycle.sales_count <> coalesce(lines.n, 0) or cycle.commission_total <> coalesce(lines.commission, 0)
        or cycle.fee_total <> coalesce(lines.fee, 0)`,
  }),
  sqlInvariant({
    name: 'cycle-shares',
    statement: "A creator's share of a cycle is the sum of the creator's sales in it.",
    table: 'billing_cycle_shares',
    breaches: sql`
      select 'cycle ' || cycle_id || ', creator ' || creator_id as subject,
        'share ' || sum(share) || ', sales ' || sum(sold) as detail
      from (
        select billing_cycle_id as cycle_id, creator_id, commission as share, 0 as sold, sales_count as shares_n, 0 as sold_n
          from billing_cycle_shares
        union all
        select billing_cycle_id, creator_id, 0, sum(commission), 0, count(*) from sales
        where billing_cycle_id is not null group by billing_cycle_id, creator_id
      ) as both_sides
      group by cycle_id, creator_id
      having sum(share) <> sum(sold) or sum(shares_n) <> sum(sold_n)`,
  }),
  sqlInvariant({
    name: 'cycles-in-journal',
    statement:
      'What a cycle is due, and that it was charged, stands in the journal, and amount due and credit make up its totals.',
    table: 'billing_cycles',
    breaches: sql`
      select 'cycle ' || cycle.id as subject,
        cycle.state || ', due ' || cycle.amount_due || ', credit ' || cycle.credit_total || ', journal: closed with '
          || coalesce(closed.amount, 0) || ', charged with ' || coalesce(charged.amount, 0) || ', released ' || coalesce(charged.released, 0) as detail
      from billing_cycles as cycle
      left join (
        select entry.subject_id, sum(posting.amount) as amount from ledger_entries as entry
        join ledger_postings as posting on posting.entry_id = entry.id and posting.account = 'merchant_receivable'
        where entry.kind = 'cycle_closed' group by entry.subject_id
      ) as closed on closed.subject_id = cycle.id
      left join (
        select entry.subject_id,
          sum(case when posting.account = 'processor_clearing' then posting.amount else 0 end) as amount,
          sum(case when posting.account = 'creator_released' then -posting.amount else 0 end) as released
        from ledger_entries as entry
        join ledger_postings as posting on posting.entry_id = entry.id
        where entry.kind = 'cycle_charged' group by entry.subject_id
      ) as charged on charged.subject_id = cycle.id
      where (cycle.state = 'open' and (closed.subject_id is not null or charged.subject_id is not null or cycle.amount_due <> 0))
        or (cycle.state <> 'open' and (coalesce(closed.amount, 0) <> cycle.amount_due
          or cycle.amount_due + cycle.credit_total <> cycle.commission_total + cycle.fee_total))
        or (cycle.state = 'closed' and charged.subject_id is not null)
        or (cycle.state = 'charged' and (coalesce(charged.amount, 0) <> cycle.amount_due
          or coalesce(charged.released, 0) <> cycle.commission_total))`,
  }),
  sqlInvariant({
    name: 'credits',
    statement:
      'Each credit stands in the journal; a merchant is credited at most the accepted commission and fee, and uses no more than was granted.',
    table: 'credits',
    breaches: sql`
      select 'credit ' || credit.id as subject, 'amount ' || credit.amount || ', journal ' || coalesce(-posting.amount, 0) as detail
      from credits as credit
      left join ledger_entries as entry on entry.subject_id = credit.id and entry.kind = 'credit_granted'
      left join ledger_postings as posting on posting.entry_id = entry.id and posting.account = 'merchant_unbilled'
      where coalesce(-posting.amount, 0) <> credit.amount or posting.owner_id <> credit.merchant_id
      union all
      select 'merchant ' || cycle.merchant_id,
        'granted ' || coalesce(granted.amount, 0) || ', used ' || cycle.used || ', accepted ' || cycle.accepted
      from (
        select merchant_id, sum(credit_total) as used, sum(commission_total + fee_total) as accepted
        from billing_cycles group by merchant_id
      ) as cycle
      left join (select merchant_id, sum(amount) as amount from credits group by merchant_id) as granted
        on granted.merchant_id = cycle.merchant_id
      where cycle.used > coalesce(granted.amount, 0) or coalesce(granted.amount, 0) > cycle.accepted`,
  }),
  sqlInvariant({
    name: 'merchant-balances',
    statement:
      'A merchant owes unbilled what open cycles hold less unused credit, and receivable what is closed and not charged.',
    table: 'billing_cycles',
    breaches: sql`
      select 'merchant ' || merchant_id as subject,
        'unbilled: journal ' || sum(unbilled) || ', cycles ' || sum(open_total)
          || '; receivable: journal ' || sum(receivable) || ', cycles ' || sum(due) as detail
      from (
        select owner_id as merchant_id,
          case when account = 'merchant_unbilled' then sum(amount) else 0 end as unbilled,
          case when account = 'merchant_receivable' then sum(amount) else 0 end as receivable, 0 as open_total, 0 as due
        from ledger_postings where account in ('merchant_unbilled', 'merchant_receivable') group by owner_id, account
        union all
        select merchant_id, 0, 0,
          case when state = 'open' then commission_total + fee_total else credit_total end,
          case when state = 'closed' then amount_due else 0 end
        from billing_cycles
        union all select merchant_id, 0, 0, -amount, 0 from credits
      ) as both_sides
      group by merchant_id
      having sum(unbilled) <> sum(open_total) or sum(receivable) <> sum(due)`,
  }),
  sqlInvariant({
    name: 'invoice-attempts',
    statement:
      'A closed cycle is invoiced at its amount due, with one attempt at a time and one success that has not failed; it has the id of the latest success.',
    table: 'processor_attempts',
    breaches: sql`
      select 'cycle ' || cycle.id as subject,
        cycle.state || ', due ' || cycle.amount_due || ', attempts ' || count(attempt.id) as detail
      from billing_cycles as cycle
      left join processor_attempts as attempt on attempt.subject_id = cycle.id and attempt.kind = 'invoice'
      group by cycle.id, cycle.state, cycle.amount_due, cycle.processor_invoice_id
      having (cycle.state = 'open' and count(attempt.id) > 0)
        or (cycle.state <> 'open' and count(attempt.id) = 0)
        or sum(case when attempt.state in ('waiting', 'created') and attempt.failed_at is null then 1 else 0 end) > 1
        or sum(case when attempt.amount <> cycle.amount_due then 1 else 0 end) > 0
        or coalesce((
          select latest.processor_id from processor_attempts as latest
          where latest.subject_id = cycle.id and latest.kind = 'invoice' and latest.state = 'created'
          order by latest.id desc limit 1
        ), '') <> coalesce(cycle.processor_invoice_id, '')`,
  }),
]
