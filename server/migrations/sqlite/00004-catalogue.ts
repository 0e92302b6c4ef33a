import { Migration } from '@mikro-orm/migrations'
import { CATALOGUE_INDEXES, foldStoredOffers, SUSPENDED_USERS } from '../catalogue.ts'

export class Migration00004Catalogue extends Migration {
  override async up(): Promise<void> {
    for (const statement of STATEMENTS) await this.execute(statement)
    await foldStoredOffers((...query) => this.execute(...query))
  }
}

/**
 * The full-text index holds no text of its own. Its rows are numbered by a table, because the hidden row numbers of
 * `offers` may change whenever the file is vacuumed. The words are folded and separated by single spaces already, so its
 * tokenizer takes everything else for a part of a word.
 */
const STATEMENTS = [
  `alter table "offers" add column "category_key" text not null default ''`,
  `alter table "offers" add column "niche_key" text not null default ''`,
  `alter table "offers" add column "search_words" text not null default ''`,
  'drop index "offers_live"',
  'drop index "offers_merchant"',
  ...CATALOGUE_INDEXES,
  SUSPENDED_USERS,
  `create table "offer_search_rows" (
    "number" integer not null primary key,
    "offer_id" text not null unique,
    constraint "offer_search_rows_offer_id_foreign" foreign key ("offer_id") references "offers" ("id") on update no action on delete restrict
  )`,
  `create virtual table "offer_search" using fts5(
    words, content='', contentless_delete=1, detail=none, prefix='1 2 3',
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
  )`,
  'insert into offer_search_rows (offer_id) select id from offers order by id',
  'insert into offer_search (rowid, words) select number, search_words from offer_search_rows join offers on offers.id = offer_id',
  `create trigger "offers_search_insert" after insert on "offers" begin
    insert into offer_search_rows (offer_id) values (new.id);
    insert into offer_search (rowid, words) values (last_insert_rowid(), new.search_words);
  end`,
  `create trigger "offers_search_update" after update of search_words on "offers"
    when old.search_words <> new.search_words begin
    update offer_search set words = new.search_words
      where rowid = (select number from offer_search_rows where offer_id = new.id);
  end`,
  `create trigger "offers_search_delete" before delete on "offers" begin
    delete from offer_search where rowid = (select number from offer_search_rows where offer_id = old.id);
    delete from offer_search_rows where offer_id = old.id;
  end`,
]
