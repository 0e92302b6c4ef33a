import { sql } from 'kysely'
import type { Platform } from '../../server/platform/platform.ts'

/** So many at a time that no statement outlasts the timeout of one. */
const EVENTS_A_PART = 250_000

/** Adds events of long ago, numbered from `from`: applied, and their bodies gone with the retention time. */
export async function addOldEvents(
  platform: Platform,
  scope: string,
  { from, count }: { from: number; count: number },
): Promise<void> {
  for (let done = 0; done < count; done += EVENTS_A_PART) {
    await addPart(platform, scope, from + done + 1, from + Math.min(done + EVENTS_A_PART, count))
  }
}

function addPart({ database }: Platform, scope: string, first: number, last: number): Promise<unknown> {
  const [from, to] = [sql.lit(first), sql.lit(last)]
  const source =
    database.dialect === 'sqlite'
      ? sql`with recursive line(n) as (select ${from} union all select n + 1 from line where n < ${to})
          select printf('01890000-0000-7000-8000-%012x', n), printf('old-%d', n), printf('%064x', n)`
      : sql`select cast('01890000-0000-7000-8000-' || lpad(to_hex(n), 12, '0') as uuid), 'old-' || n, lpad(to_hex(n), 64, '0')`
  const lines = database.dialect === 'sqlite' ? sql`line` : sql`generate_series(${from}, ${to}) as line(n)`
  return database.transaction((tx) =>
    sql`insert into inbound_events (id, delivery_id, body_hash, source, scope, conflict_hash, topic, received_at,
        state, attempts, next_attempt_at, lease_until, finished_at, row_digest)
      ${source}, 'store', ${sql.lit(scope)}, '', 'orders/paid', 0, 'done', 1, 0, 0, 0, '' from ${lines}`.execute(
      tx,
    ),
  )
}
