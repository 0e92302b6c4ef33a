import { Migration } from '@mikro-orm/migrations'

export class Migration00005Moderation extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `create table "link_days" (
    "link_id" uuid not null,
    "day" int not null,
    "visits" int not null,
    primary key ("link_id", "day")
  )`,
  `create index "link_days_day" on "link_days" ("day")`,
  `create table "mailboxes" (
    "user_id" uuid not null,
    "fingerprint" text not null,
    primary key ("user_id")
  )`,
  `create index "mailboxes_fingerprint" on "mailboxes" ("fingerprint")`,
  `create index "flags_subject" on "flags" ("subject_id", "kind")`,
]
