import { OPERATOR, recordAudit } from '../moderation/audit.service.ts'
import type { Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import {
  type DeliveryKey,
  findAppliedOperatorEvents,
  findOperatorEvents,
  insertOperatorDelivery,
  isReceived,
} from './operator-deliveries.store.ts'

export interface OperatorDelivery extends DeliveryKey {
  /** The fixture, file or recorded event that the body comes from. */
  fixture: string
  /** Address of the service that it is sent to. */
  url: string
}

/**
 * Records a delivery that the command line is about to send in the name of a store or the processor, with an audit row, so that
 * its event has the origin `operator`. A delivery that the inbox holds already came from its sender: it is only audited.
 */
export function recordOperatorDelivery(platform: Platform, delivery: OperatorDelivery): Promise<void> {
  const { fixture, url, scope, delivery_id, body_hash } = delivery
  const key = { scope, delivery_id, body_hash }
  return platform.database.transaction(async (tx) => {
    const received = await isReceived(tx, key)
    if (!received) await insertOperatorDelivery(tx, key, platform.clock.now())
    await recordAudit(platform, tx, {
      actor: OPERATOR,
      action: 'webhook.replay',
      subjectType: 'delivery',
      subjectId: delivery_id,
      reason: null,
      before: null,
      after: { scope, body_hash, fixture, url, redelivery: received },
    })
  })
}

export type EventOrigin = 'store' | 'processor' | 'operator'

/** Who sent each of these events: its source, or an operator in its name. */
export async function originsOf(
  db: Queries,
  events: readonly { id: string; source: 'store' | 'processor' }[],
): Promise<Map<string, EventOrigin>> {
  const origins = new Map<string, EventOrigin>(events.map(({ id, source }) => [id, source]))
  for (let at = 0; at < events.length; at += IDS_AT_ONCE) {
    const ids = events.slice(at, at + IDS_AT_ONCE).map(({ id }) => id)
    for (const id of await findOperatorEvents(db, ids)) origins.set(id, 'operator')
  }
  return origins
}

const IDS_AT_ONCE = 500

/** Ids of what rests on events that an operator sent. */
export interface OperatorEffects {
  sales: string[]
  billing_cycles: string[]
  payouts: string[]
}

/** Sales decided, cycles charged and payouts settled by events that an operator sent. */
export async function operatorEffects(db: Queries): Promise<OperatorEffects> {
  const effects: OperatorEffects = { sales: [], billing_cycles: [], payouts: [] }
  for (const { result } of await findAppliedOperatorEvents(db)) {
    const { sale_id, billing_cycle_id, payout_id } = JSON.parse(result ?? '{}') as Record<string, string>
    if (sale_id !== undefined) effects.sales.push(sale_id)
    if (billing_cycle_id !== undefined) effects.billing_cycles.push(billing_cycle_id)
    if (payout_id !== undefined) effects.payouts.push(payout_id)
  }
  return effects
}
