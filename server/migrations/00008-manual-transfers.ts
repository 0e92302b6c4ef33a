import type { Ddl } from './ddl.ts'

/** Invoices and payouts that people settle by bank transfer. */
export const up = ({ id, oneOf, unique, refuse, neverDeleted }: Ddl): string[] => [
  `create table "manual_transfers" (
      "id" ${id} not null primary key,
      "kind" text not null,
      "subject_id" ${id} not null,
      "number" text not null,
      "amount" bigint not null,
      "state" text not null,
      "file" text,
      "exported_at" bigint,
      "bank_reference" text,
      "reason" text,
      "confirmed_by" ${id},
      "created_at" bigint not null,
      "settled_at" bigint,
      "row_digest" text not null,
      constraint "manual_transfers_kind_check" check (${oneOf('kind', 'invoice', 'payout')}),
      constraint "manual_transfers_state_check" check (${oneOf('state', 'open', 'paid', 'failed')}),
      constraint "manual_transfers_amount_check" check (amount > 0)
    )`,
  unique('manual_transfers', 'manual_transfers_subject', 'subject_id'),
  unique('manual_transfers', 'manual_transfers_number', 'number'),
  unique('manual_transfers', 'manual_transfers_reference', 'bank_reference'),
  `create index "manual_transfers_open" on "manual_transfers" ("kind", "id") where state = 'open'`,
  `create index "manual_transfers_settled" on "manual_transfers" ("settled_at") where settled_at is not null`,
  'create index "manual_transfers_file" on "manual_transfers" ("file") where file is not null',
  ...neverDeleted('manual_transfers'),
  refuse(
    'update',
    'manual_transfers',
    'manual_transfers_forward_only',
    `
    new.id <> old.id or new.kind <> old.kind or new.subject_id <> old.subject_id or new.number <> old.number
    or new.amount <> old.amount or (old.state <> 'open' and new.state <> old.state)
    or (old.file is not null and new.file <> old.file)
    or (old.bank_reference is not null and new.bank_reference <> old.bank_reference)`,
  ),
]
