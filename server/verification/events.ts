import { sql } from 'kysely'
import { type Invariant, sqlInvariant } from './invariant.ts'

/** What must hold for the inbox, and between its events and their results. */
export const EVENT_INVARIANTS: Invariant[] = [
  sqlInvariant({
    name: 'events-once',
    statement:
      'Each delivery is kept once, and another body under its id once more, which never takes effect.',
    table: 'inbound_events',
    // In the order of their index, so that equal ones are neighbors and no groups have to be collected.
    breaches: (scope) => sql`
      select 'delivery ' || delivery_id || ' of ' || scope as subject, count(*) || ' events' as detail
      from (
        select scope, delivery_id, conflict_hash from inbound_events
        where ${scope.covered ? sql`(scope, delivery_id) in (select scope, delivery_id from inbound_events where ${scope.isNew('inbound_events.id')})` : sql`true`}
        order by scope, delivery_id, conflict_hash
      ) as event
      group by scope, delivery_id, conflict_hash having count(*) > 1
      union all
      select 'event ' || other.id, 'its body is the first one under its delivery id'
      from inbound_events as other
      join inbound_events as original on original.scope = other.scope
        and original.delivery_id = other.delivery_id and original.conflict_hash = ''
      where ${scope.isNew('other.id')} and other.conflict_hash <> '' and other.body_hash = original.body_hash
      union all
      select 'event ' || id, 'it is done, and its delivery id had come before with another body'
      from inbound_events where ${scope.isNew('id')} and conflict_hash <> '' and state = 'done'`,
  }),
  sqlInvariant({
    name: 'events-explained',
    // A flag of a `flagged` event is about a billing cycle, a payout or the table.
    statement: 'An event that is ignored or set aside says why, and whatever is set aside has been flagged.',
    table: 'inbound_events',
    breaches: (scope) => sql`
      select 'event ' || id as subject, state || ' without a reason' as detail from inbound_events
      where ${scope.isNew('id')} and state in ('ignored', 'set_aside') and reason is null
      union all
      select 'event ' || event.id, 'set aside without a flag: ' || event.reason from inbound_events as event
      where ${scope.isNew('event.id')} and event.state = 'set_aside'
        and event.reason_code is distinct from 'flagged'
        and not exists (select 1 from flags where flags.subject_id = cast(event.id as text))
        and not exists (
          select 1 from flags where flags.subject_type = 'store_events' and flags.subject_id = event.scope || case
            when event.conflict_hash <> '' then ':conflicting'
            when event.reason_code = 'unreadable' then ':unreadable'
            else ':failed' end)
        and not exists (
          select 1 from flags where flags.kind = 'processor_event_unmapped'
            and event.reason = 'no rule maps event type ' || flags.subject_id)`,
  }),
  sqlInvariant({
    name: 'events-applied',
    statement:
      'Each decision about a sale rests on an event that is done, and each order event that is done has its sale or its pending order.',
    table: 'inbound_events',
    breaches: (scope) => {
      const decisions = sql`(
        select id, event_id, store_id from sales where ${scope.isNewSale('sales.id')}
        union all
        select sale.id, former.event_id, sale.store_id
        from sale_decisions as former join sales as sale on sale.id = former.sale_id
        where ${scope.isNewSale('former.sale_id')}
      )`
      return sql`
        select 'sale ' || sale.id as subject, 'its event is ' || coalesce(event.state, 'missing') as detail
        from ${decisions} as sale
        left join inbound_events as event on event.id = sale.event_id
        where event.id is null or event.state <> 'done' or event.scope <> cast(sale.store_id as text)
        union all
        select 'event ' || event.id, 'done, and no sale came from it'
        from inbound_events as event
        left join ${decisions} as sale on sale.event_id = event.id
        left join (
          select '{"pending_order_id":"' || id || '"}' as result, cast(store_id as text) as scope from pending_orders
        ) as placed on placed.result = event.result and placed.scope = event.scope
        where ${scope.isNewEvent('event.id')} and sale.id is null and placed.result is null
          and event.source = 'store' and event.state = 'done'`
    },
  }),
  sqlInvariant({
    name: 'settled-by-events',
    // An event's outcome is kept as the JSON that its applier returned.
    statement:
      'Each charged cycle, each settled payout and each failed invoice is the outcome of one event of the processor, and each such event has its outcome.',
    table: 'billing_cycles',
    breaches: sql`
      select coalesce(ours.subject, theirs.subject) as subject,
        'events that say so: ' || coalesce(theirs.events, 0)
          || case when ours.subject is null then ', and it is not so' else '' end as detail
      from (
        select 'cycle ' || id as subject, '{"billing_cycle_id":"' || id || '","state":"charged"}' as result
          from billing_cycles where state = 'charged'
        union all
        select 'payout ' || id, '{"payout_id":"' || id || '","state":"' || state || '"}'
          from payouts where state in ('paid', 'failed')
        union all
        select 'attempt ' || id, '{"failed_attempt_id":"' || id || '"}'
          from processor_attempts where failed_at is not null
      ) as ours
      full join (
        select result, 'event ' || min(cast(id as text)) as subject, count(*) as events
        from inbound_events where source = 'processor' and state = 'done' group by result
      ) as theirs on theirs.result = ours.result
      where ours.subject is null or theirs.events is null or theirs.events <> 1`,
  }),
]
