import { Migration } from '@mikro-orm/migrations'

/**
 * That a body's event is there is looked up once a statement, no longer body by body with a lock on each event: that was a twentieth of
 * the server's work on one that comes in. The lock kept the event from going, which here no event can do, nor get another key.
 */
export class Migration00014BodiesOfEvents extends Migration {
  override up(): void {
    this.addSql(`create trigger "inbound_events_same_id" before update on "inbound_events"
      for each row when (new.id <> old.id) execute function refuse_change()`)
    // A plan is kept for as long as a connection: one that was made while the table was small must not read all of it later.
    this.addSql(`create function refuse_lost_inbound_bodies() returns trigger language plpgsql
      set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
      as $$ begin
        if exists (
          select from added where not exists (select from inbound_events as found where found.id = added.event_id)
        ) then
          raise exception 'bodies of no event' using errcode = 'foreign_key_violation';
        end if;
        return null;
      end $$`)
    this.addSql(`create trigger "inbound_bodies_refer" after insert on "inbound_bodies"
      referencing new table as added for each statement execute function refuse_lost_inbound_bodies()`)
    this.addSql(`alter table "inbound_bodies" drop constraint "inbound_bodies_event_id_foreign"`)
  }
}
