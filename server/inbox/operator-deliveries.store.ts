import type { Queries, Tx } from '../platform/database/database.ts'
import type { EventRow } from './inbox.store.ts'

export interface DeliveryKey {
  scope: string
  delivery_id: string
  /** SHA-256 of the raw body, hex. */
  body_hash: string
}

export async function insertOperatorDelivery(tx: Tx, key: DeliveryKey, now: number): Promise<void> {
  await tx
    .insertInto('operator_deliveries')
    .values({ ...key, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Whether the inbox holds an event of this delivery. */
export async function isReceived(db: Queries, key: DeliveryKey): Promise<boolean> {
  const row = await db
    .selectFrom('inbound_events')
    .select('id')
    .where('scope', '=', key.scope)
    .where('delivery_id', '=', key.delivery_id)
    .where('body_hash', '=', key.body_hash)
    .executeTakeFirst()
  return row !== undefined
}

function operatorEvents(db: Queries) {
  return db
    .selectFrom('operator_deliveries as sent')
    .innerJoin('inbound_events as event', (join) =>
      join
        .onRef('event.scope', '=', 'sent.scope')
        .onRef('event.delivery_id', '=', 'sent.delivery_id')
        .onRef('event.body_hash', '=', 'sent.body_hash'),
    )
}

/** Those of these events that match a recorded delivery. */
export async function findOperatorEvents(db: Queries, eventIds: readonly string[]): Promise<string[]> {
  if (eventIds.length === 0) return []
  const rows = await operatorEvents(db).select('event.id').where('event.id', 'in', eventIds).execute()
  return rows.map(({ id }) => id)
}

/** Every applied event that matches a recorded delivery, in the order of arrival. */
export function findAppliedOperatorEvents(db: Queries): Promise<Pick<EventRow, 'id' | 'result'>[]> {
  return operatorEvents(db)
    .select(['event.id', 'event.result'])
    .where('event.state', '=', 'done')
    .orderBy('event.id')
    .execute()
}
