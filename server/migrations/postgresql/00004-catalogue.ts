import { Migration } from '@mikro-orm/migrations'
import { CATALOGUE_INDEXES, foldStoredOffers, SUSPENDED_USERS } from '../catalogue.ts'

export class Migration00004Catalogue extends Migration {
  override async up(): Promise<void> {
    for (const statement of COLUMNS) await this.execute(statement)
    await foldStoredOffers((...query) => this.execute(...query))
    for (const statement of INDEXES) await this.execute(statement)
  }
}

const COLUMNS = [
  `alter table "offers" add column "category_key" text not null default ''`,
  `alter table "offers" add column "niche_key" text not null default ''`,
  `alter table "offers" add column "search_words" text not null default ''`,
]

/**
 * The words come folded and apart, so no text search configuration, which would depend on the server, reads them. Offers
 * are written seldom: no list of pending entries that every search would have to read through.
 */
const INDEXES = [
  `alter table "offers" add column "search_vector" tsvector
    generated always as (array_to_tsvector(string_to_array(nullif(search_words, ''), ' '))) stored`,
  'create index "offers_search" on "offers" using gin ("search_vector") with (fastupdate = off)',
  'drop index "offers_live"',
  'drop index "offers_merchant"',
  ...CATALOGUE_INDEXES,
  SUSPENDED_USERS,
]
