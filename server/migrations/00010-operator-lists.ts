import type { Ddl } from './ddl.ts'

/** For the operator's lists of one person's mails and of what one admin did. */
export const up = (_: Ddl): string[] => [
  'create index "mails_user" on "mails" ("user_id", "id")',
  'create index "audit_entries_actor" on "audit_entries" ("actor", "id")',
]
