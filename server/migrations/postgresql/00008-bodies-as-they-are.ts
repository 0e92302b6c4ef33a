import { Migration } from '@mikro-orm/migrations'

/**
 * Where the server knows no lz4, bodies are kept as they come: its own compression took two thirds of all that it does to take
 * one in. They are then two to three times as large on disk.
 */
export class Migration00008BodiesAsTheyAre extends Migration {
  override up(): void {
    this.addSql(`do $$ begin
      if not exists (
        select from pg_attribute
        where attrelid = 'inbound_bodies'::regclass and attname = 'body' and attcompression = 'l'
      ) then
        alter table "inbound_bodies" alter column "body" set storage external;
      end if;
    end $$`)
  }
}
