import { Migration } from '@mikro-orm/migrations'

export class Migration00005Moderation extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement)
  }
}

const STATEMENTS = [
  `create table "link_days" (
    "link_id" text not null,
    "day" integer not null,
    "visits" integer not null,
    primary key ("link_id", "day")
  )`,
  `create index "link_days_day" on "link_days" ("day")`,
  `create table "mailboxes" (
    "user_id" text not null primary key,
    "fingerprint" text not null
  )`,
  `create index "mailboxes_fingerprint" on "mailboxes" ("fingerprint")`,
  `create index "flags_subject" on "flags" ("subject_id", "kind")`,
]
