import { Migration } from '@mikro-orm/migrations'

/**
 * Where the server knows no lz4, receipts are kept as they come: its own compression took nearly half of writing such
 * a row. They are then two to three times as large on disk, and apart from the rows that lists are read from.
 */
export class Migration00009ReceiptsAsTheyAre extends Migration {
  override up(): void {
    this.addSql(`do $$ begin
      if not exists (
        select from pg_attribute
        where attrelid = 'sales'::regclass and attname = 'receipt' and attcompression = 'l'
      ) then
        alter table "sales" alter column "receipt" set storage external;
      end if;
    end $$`)
  }
}
