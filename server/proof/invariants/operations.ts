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
]
