/** The tables of seals, a part of the migration `00001-initial`. */
export const SEALS = [
  `create table "ledger_seals" (
    "position" int not null,
    "sealed_at" bigint not null,
    "digest" text not null,
    primary key ("position")
  )`,
  `alter table "ledger_seals" add constraint "ledger_seals_digest_unique" unique ("digest")`,
  `create table "ledger_seal_heads" (
    "position" int not null,
    "ledger_id" uuid not null,
    "sequence" int not null,
    "hash" text not null,
    primary key ("position", "ledger_id")
  )`,
  `alter table "ledger_seal_heads" add constraint "ledger_seal_heads_head" unique ("ledger_id", "sequence")`,
  `alter table "ledger_seal_heads" add constraint "ledger_seal_heads_position_foreign" foreign key ("position") references "ledger_seals" ("position") on update no action on delete restrict`,
]
