import type { Ddl } from './ddl.ts'

/** Keys for programs that call in the name of an account. */
export const up = ({ id, oneOf, unique }: Ddl): string[] => [
  `create table "api_keys" (
      "id" ${id} not null primary key,
      "user_id" ${id} not null constraint "api_keys_user_id_foreign" references "users" ("id") on delete restrict,
      "name" text not null,
      "scope" text not null,
      "token_hash" text not null,
      "last4" text not null,
      "created_at" bigint not null,
      "expires_at" bigint,
      "last_used_at" bigint,
      "row_digest" text not null,
      constraint "api_keys_scope_check" check (${oneOf('scope', 'read', 'write')})
    )`,
  unique('api_keys', 'api_keys_token_hash_unique', 'token_hash'),
  'create index "api_keys_user" on "api_keys" ("user_id")',
]
