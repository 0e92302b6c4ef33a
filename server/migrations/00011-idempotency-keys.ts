import type { Ddl } from './ddl.ts'

/** Answers that a repeated call is given again. */
export const up = ({ id, unique }: Ddl): string[] => [
  `create table "idempotency_keys" (
      "id" ${id} not null primary key,
      "user_id" ${id} not null,
      "key" text not null,
      "answer_encrypted" text not null,
      "created_at" bigint not null
    )`,
  unique('idempotency_keys', 'idempotency_keys_key', 'user_id, key'),
  'create index "idempotency_keys_created" on "idempotency_keys" ("created_at")',
]
