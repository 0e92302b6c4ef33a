import { sql } from 'kysely'
import { type Invariant, sqlInvariant } from './invariant.ts'

/** What must hold between payouts, the shares that they carry and the journal. */
export const PAYOUT_INVARIANTS: Invariant[] = [
  sqlInvariant({
    name: 'payout-lines',
    statement:
      "A payout's lines sum to its amount, and each is a part of its creator's share of a cycle of the merchant that it names.",
    table: 'payouts',
    breaches: sql`
      select 'payout ' || payout.id as subject,
        'amount ' || payout.amount || ', lines ' || coalesce(sum(line.amount), 0) || ', shares ' || coalesce(sum(share.commission), 0) as detail
      from payouts as payout
      left join payout_lines as line on line.payout_id = payout.id
      left join billing_cycle_shares as share
        on share.billing_cycle_id = line.billing_cycle_id and share.creator_id = payout.creator_id
      left join billing_cycles as cycle on cycle.id = line.billing_cycle_id
      group by payout.id, payout.amount
      having coalesce(sum(line.amount), 0) <> payout.amount
        or sum(case when line.amount <= share.commission and line.merchant_id = cycle.merchant_id then 0 else 1 end) > 0`,
  }),
  sqlInvariant({
    name: 'shares-paid-once',
    statement:
      'The lines of a share in payouts that have not failed add up to its carried part, which is at most the share and zero before its release.',
    table: 'billing_cycle_shares',
    breaches: sql`
      select 'cycle ' || share.billing_cycle_id || ', creator ' || share.creator_id as subject,
        'share ' || share.commission || ', carried ' || share.carried || ', lines ' || coalesce(sum(line.amount), 0) as detail
      from billing_cycle_shares as share
      left join (
        select line.billing_cycle_id, payout.creator_id, line.amount
        from payout_lines as line join payouts as payout on payout.id = line.payout_id
        where payout.state <> 'failed'
      ) as line on line.billing_cycle_id = share.billing_cycle_id and line.creator_id = share.creator_id
      group by share.billing_cycle_id, share.creator_id, share.commission, share.carried, share.released_at
      having coalesce(sum(line.amount), 0) <> share.carried
        or share.carried > share.commission
        or (share.carried > 0 and share.released_at is null)`,
  }),
  sqlInvariant({
    name: 'shares-released',
    statement: 'A share of a cycle is released at the moment when that cycle is charged, and not before.',
    table: 'billing_cycle_shares',
    breaches: sql`
      select 'cycle ' || share.billing_cycle_id || ', creator ' || share.creator_id as subject,
        case when share.released_at is null then 'not released' else 'released at ' || share.released_at end
          || ', the cycle is ' || cycle.state || coalesce(' since ' || cycle.charged_at, '') as detail
      from billing_cycle_shares as share
      join billing_cycles as cycle on cycle.id = share.billing_cycle_id
      where (share.released_at is not null) <> (cycle.state = 'charged') or share.released_at <> cycle.charged_at`,
  }),
  sqlInvariant({
    name: 'payouts-in-journal',
    statement:
      'Each payout stands in the journal as created, and as confirmed or failed once it is settled so.',
    table: 'payouts',
    breaches: sql`
      select 'payout ' || payout.id as subject,
        payout.state || ', amount ' || payout.amount || ', journal: created ' || coalesce(sum(case when entry.kind = 'payout_created' then -posting.amount end), 0)
          || ', confirmed ' || coalesce(sum(case when entry.kind = 'payout_confirmed' then posting.amount end), 0)
          || ', failed ' || coalesce(sum(case when entry.kind = 'payout_failed' then posting.amount end), 0) as detail
      from payouts as payout
      left join ledger_entries as entry on entry.subject_id = payout.id
      left join ledger_postings as posting on posting.entry_id = entry.id and posting.account = 'payouts_in_transit'
        and posting.owner_id = payout.creator_id
      group by payout.id, payout.state, payout.amount
      having coalesce(sum(case when entry.kind = 'payout_created' then -posting.amount end), 0) <> payout.amount
        or coalesce(sum(case when entry.kind = 'payout_confirmed' then posting.amount end), 0)
          <> max(case when payout.state = 'paid' then payout.amount else 0 end)
        or coalesce(sum(case when entry.kind = 'payout_failed' then posting.amount end), 0)
          <> max(case when payout.state = 'failed' then payout.amount else 0 end)`,
  }),
  sqlInvariant({
    name: 'creator-balances',
    statement:
      'Pending is what cycles not charged hold, released is what charged cycles hold less payouts that have not failed.',
    table: 'billing_cycle_shares',
    breaches: sql`
      select 'creator ' || creator_id as subject,
        'pending: journal ' || sum(pending) || ', cycles ' || sum(uncharged) || '; released: journal ' || sum(released)
          || ', cycles less payouts ' || sum(charged) as detail
      from (
        select owner_id as creator_id,
          case when account = 'creator_pending' then -sum(amount) else 0 end as pending,
          case when account = 'creator_released' then -sum(amount) else 0 end as released, 0 as uncharged, 0 as charged
        from ledger_postings where account in ('creator_pending', 'creator_released') group by owner_id, account
        union all
        select share.creator_id, 0, 0,
          case when cycle.state = 'charged' then 0 else share.commission end,
          case when cycle.state = 'charged' then share.commission else 0 end
        from billing_cycle_shares as share join billing_cycles as cycle on cycle.id = share.billing_cycle_id
        union all select creator_id, 0, 0, 0, -amount from payouts where state <> 'failed'
      ) as both_sides
      group by creator_id
      having sum(pending) <> sum(uncharged) or sum(released) <> sum(charged) or sum(released) < 0`,
  }),
  sqlInvariant({
    name: 'payout-attempts',
    statement:
      'A payout is sent at its amount, with one attempt at a time and one success; only what was sent is submitted, under the id that it got.',
    table: 'processor_attempts',
    breaches: sql`
      select 'payout ' || payout.id as subject,
        payout.state || ', amount ' || payout.amount || ', attempts ' || count(attempt.id) as detail
      from payouts as payout
      left join processor_attempts as attempt on attempt.subject_id = payout.id and attempt.kind = 'payout'
      group by payout.id, payout.state, payout.amount, payout.processor_payout_id
      having count(attempt.id) = 0
        or sum(case when attempt.state in ('waiting', 'created') then 1 else 0 end) > 1
        or sum(case when attempt.amount <> payout.amount then 1 else 0 end) > 0
        or (payout.state <> 'pending') <> (sum(case when attempt.state = 'created' then 1 else 0 end) = 1)
        or coalesce(max(case when attempt.state = 'created' then attempt.processor_id end), '')
          <> coalesce(payout.processor_payout_id, '')`,
  }),
]
