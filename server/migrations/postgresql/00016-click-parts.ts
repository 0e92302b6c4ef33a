import { Migration } from '@mikro-orm/migrations'

/**
 * Functions that add and drop parts of `clicks` with the rights of the tables' owner, so that the service can run as a role that
 * owns nothing. They take no SQL, only a month or the name of a part.
 */
export class Migration00016ClickParts extends Migration {
  override up(): void {
    // A function with its owner's rights needs a fixed search path with temporary tables last:
    // https://www.postgresql.org/docs/current/sql-createfunction.html#SQL-CREATEFUNCTION-SECURITY
    for (const statement of [ADD, DROP]) {
      this.addSql(
        `do $do$ begin execute replace($fn$${statement}$fn$, ':schema', quote_ident(current_schema())); end $do$`,
      )
    }
    this.addSql('revoke execute on function add_click_month(date) from public')
    this.addSql('revoke execute on function drop_click_part(text) from public')
  }
}

/** A part's ids begin with the month's first UUIDv7: its milliseconds since 1970 as 12 hex digits. */
const ADD = `create function add_click_month(month date) returns void
  language plpgsql security definer set search_path = :schema, pg_temp as $body$
  declare
    starts text[] := array[]::text[];
    moment date;
    digits text;
  begin
    if month is null or month <> date_trunc('month', month)::date then
      raise exception 'not the first day of a month: %', month;
    end if;
    foreach moment in array array[month, (month + interval '1 month')::date] loop
      digits := lpad(to_hex((extract(epoch from moment::timestamp) * 1000)::bigint), 12, '0');
      starts := starts || (substr(digits, 1, 8) || '-' || substr(digits, 9) || '-7000-8000-000000000000');
    end loop;
    execute format('create table if not exists %I partition of clicks for values from (%L) to (%L)',
      'clicks_' || to_char(month, 'YYYY_MM'), starts[1], starts[2]);
  end $body$`

/** Does nothing for any name but that of a part with bounds; `clicks_other` has none. Two workers may drop the same part. */
const DROP = `create function drop_click_part(part text) returns void
  language plpgsql security definer set search_path = :schema, pg_temp as $body$
  begin
    if part = 'clicks_other' or not exists (
      select from pg_inherits join pg_class on pg_class.oid = inhrelid
      where inhparent = 'clicks'::regclass and relname = part
        and relnamespace = (select relnamespace from pg_class where oid = 'clicks'::regclass)
    ) then
      return;
    end if;
    execute format('drop table if exists %I', part);
  end $body$`
