import { sql } from 'kysely'
import { inList, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { EventRow } from './inbox.store.ts'

export type SetAsideClass = 'conflicting' | 'unreadable' | 'failed'

/** How many events of each scope are set aside, by class and moment of receipt (epoch ms, inclusive); scopes without any are missing. */
export async function setAsideEventsOf(
  db: Queries,
  scopes: readonly string[],
  which: { class: SetAsideClass; since?: number },
): Promise<Map<string, number>> {
  if (scopes.length === 0) return new Map()
  const rows = await db
    .selectFrom('inbound_events')
    .select((select) => ['scope', select.fn.countAll<number>().as('events')])
    .where('state', '=', sql.lit('set_aside'))
    .where('scope', 'in', scopes)
    .$if(which.since !== undefined, (query) => query.where('received_at', '>=', which.since ?? 0))
    .where(classIs(which.class))
    .groupBy('scope')
    .execute()
  return new Map(rows.map(({ scope, events }) => [scope, Number(events)]))
}

function classIs(name: SetAsideClass) {
  if (name === 'conflicting') return sql<boolean>`conflict_hash <> ''`
  const unreadable = sql<boolean>`reason like 'malformed: %'`
  return name === 'unreadable'
    ? sql<boolean>`conflict_hash = '' and ${unreadable}`
    : sql<boolean>`conflict_hash = '' and not ${unreadable}`
}

/** What could be read of an order that was set aside. */
export interface UnreadableOrder {
  event_id: string
  order_id: string | null
  order_name: string | null
}

const unreadableOrders = valuesTable<UnreadableOrder>('found', {
  event_id: 'uuid',
  order_id: 'text',
  order_name: 'text',
})

/** Keeps what could be read of orders that were set aside, so that they are found by it. */
export async function keepUnreadable(tx: Tx, orders: readonly UnreadableOrder[]): Promise<void> {
  if (orders.length === 0) return
  await sql`
    update inbound_events set order_id = found.order_id, order_name = found.order_name
    from ${unreadableOrders(dialectOf(tx), orders)} where inbound_events.id = found.event_id`.execute(tx)
}

/** Events set aside whose order has this id or name, newest first. `storeIds`: `null` for all. */
export function findUnreadable(
  db: Queries,
  order: { id: string } | { name: string },
  storeIds: readonly string[] | null,
  limit: number,
): Promise<EventRow[]> {
  const [column, value] =
    'id' in order ? (['order_id', order.id] as const) : (['order_name', order.name] as const)
  return db
    .selectFrom('inbound_events')
    .selectAll()
    .where(column, '=', value)
    .where('state', '=', 'set_aside')
    .$if(storeIds !== null, (query) =>
      query.where(sql<boolean>`scope ${inList(dialectOf(db), 'text', storeIds ?? [])}`),
    )
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}
