import { type SqlBool, sql } from 'kysely'
import { OPERATOR, recordAudit } from '../flags/audit.service.ts'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { EventSource } from './event-states.ts'

export interface OperatorDelivery {
  scope: string
  delivery_id: string
  /** SHA-256 of the raw body, hex. */
  body_hash: string
  /** The fixture, file or recorded event that the body comes from. */
  fixture: string
  /** Address of the service that it is sent to. */
  url: string
}

/**
 * Records a delivery that the command line is about to send in the name of a store or the processor, with an audit row, so that its event
 * has the origin `operator`. A delivery that is already in the inbox came from its sender and is only audited.
 */
export function recordOperatorDelivery(platform: Platform, delivery: OperatorDelivery): Promise<void> {
  const { fixture, url, scope, delivery_id, body_hash } = delivery
  return platform.database.transaction(async (tx) => {
    const received = await tx
      .selectFrom('inbound_events')
      .select('id')
      .where('scope', '=', scope)
      .where('delivery_id', '=', delivery_id)
      .where('body_hash', '=', body_hash)
      .executeTakeFirst()
    if (!received)
      await tx
        .insertInto('operator_deliveries')
        .values({ scope, delivery_id, body_hash, created_at: platform.clock.now() })
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    await recordAudit(platform, tx, {
      actor: OPERATOR,
      action: 'webhook.replay',
      subjectType: 'delivery',
      subjectId: delivery_id,
      after: { scope, body_hash, fixture, url, redelivery: received !== undefined },
    })
  })
}

export type EventOrigin = EventSource | 'operator'

/** The sender of each event: its source, or an operator in its name. */
export async function originsOf(
  db: Queries,
  events: readonly { id: string; source: EventSource }[],
): Promise<Map<string, EventOrigin>> {
  const origins = new Map<string, EventOrigin>(events.map(({ id, source }) => [id, source]))
  const isAmong = sql<SqlBool>`event.id ${inList(dialectOf(db), 'uuid', [...origins.keys()])}`
  for (const { id } of await operatorEvents(db).select('event.id').where(isAmong).execute())
    origins.set(id, 'operator')
  return origins
}

/** Events that match a recorded delivery. */
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

/** Ids of what depends on events that an operator sent. */
export interface OperatorEffects {
  sales: string[]
  billing_cycles: string[]
  payouts: string[]
}

/** Sales decided, cycles charged and payouts settled by events that an operator sent, in the order of arrival. */
export async function operatorEffects(db: Queries): Promise<OperatorEffects> {
  const effects: OperatorEffects = { sales: [], billing_cycles: [], payouts: [] }
  const rows = await operatorEvents(db)
    .select('event.result')
    .where('event.state', '=', 'done')
    .orderBy('event.id')
    .execute()
  for (const { result } of rows) {
    const { sale_id, billing_cycle_id, payout_id } = JSON.parse(result ?? '{}') as Record<string, string>
    if (sale_id !== undefined) effects.sales.push(sale_id)
    if (billing_cycle_id !== undefined) effects.billing_cycles.push(billing_cycle_id)
    if (payout_id !== undefined) effects.payouts.push(payout_id)
  }
  return effects
}
