import { sql } from 'kysely'
import { type Invariant, sqlInvariant } from './invariant.ts'

/** What must be on record of what operators and admins did to money and people. */
export const OPERATION_INVARIANTS: Invariant[] = [
  sqlInvariant({
    name: 'credits-recorded',
    statement: 'Each credit is on record, with who granted it and why.',
    table: 'credits',
    breaches: sql`
      select 'credit ' || credit.id as subject, 'no record says who granted it' as detail
      from credits as credit
      where not exists (
        select 1 from audit_entries as audit
        where audit.action = 'billing.credit' and audit.subject_id = cast(credit.merchant_id as text)
          and audit.reason is not null and audit.after like '%"' || credit.id || '"%'
      )`,
  }),
  sqlInvariant({
    name: 'suspensions-recorded',
    statement:
      'Each suspension and each reinstatement is on record: who is suspended has one more of the former.',
    table: 'users',
    breaches: sql`
      select 'user ' || account.id as subject,
        case when account.suspended_at is null then 'active' else 'suspended' end || ', suspended '
          || count(case when audit.action = 'user.suspend' then 1 end) || ' times on record, reinstated '
          || count(case when audit.action = 'user.reinstate' then 1 end) as detail
      from users as account
      left join audit_entries as audit on audit.subject_id = cast(account.id as text)
        and audit.action in ('user.suspend', 'user.reinstate')
      group by account.id, account.suspended_at
      having count(case when audit.action = 'user.suspend' then 1 end)
        <> count(case when audit.action = 'user.reinstate' then 1 end)
          + case when account.suspended_at is null then 0 else 1 end`,
  }),
  sqlInvariant({
    name: 'second-attempts-recorded',
    statement: 'Each attempt after the first at one invoice or payout is on record, with who asked for it.',
    table: 'processor_attempts',
    breaches: sql`
      select attempt.kind || ' ' || attempt.subject_id as subject,
        'attempts ' || count(distinct attempt.id) || ', of them asked for on record '
          || count(distinct case when audit.id is not null then attempt.id end) as detail
      from processor_attempts as attempt
      left join audit_entries as audit on audit.subject_id = cast(attempt.subject_id as text)
        and audit.action = case attempt.kind when 'invoice' then 'billing.reissue' else 'payout.retry' end
        and audit.after like '%"attempt_id":"' || attempt.id || '"%'
      group by attempt.kind, attempt.subject_id
      having count(distinct attempt.id) - 1
        > count(distinct case when audit.id is not null then attempt.id end)`,
  }),
]
