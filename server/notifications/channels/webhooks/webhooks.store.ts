import { type Selectable, sql } from 'kysely'
import { bulkInsert, countOf, inList } from '../../../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../../../platform/database/database.ts'
import type { Schema } from '../../../platform/database/schema.ts'
import { LeaseQueue } from '../../../platform/queue/lease-queue.ts'
import { LONGEST_DELAY_MS } from './delivery-retry.rule.ts'
import type { DeliveryState } from './webhook.entity.ts'

export type EndpointRow = Selectable<Schema['webhook_endpoints']>
export type WebhookSecretRow = Selectable<Schema['webhook_secrets']>
export type DeliveryRow = Selectable<Schema['webhook_deliveries']>
/** A delivery with the type of its event. */
export type ShownDelivery = DeliveryRow & { event_type: string }

/** Deliveries to be made. */
export const DELIVERY_QUEUE = new LeaseQueue<DeliveryRow>({
  name: 'webhook_deliveries',
  isOpen: sql`state = 'pending'`,
  dueAt: 'due_at',
  leaseUntil: 'lease_until',
  attempts: 'attempts',
  maxDelayMs: LONGEST_DELAY_MS,
})

/**
 * Holds for deliveries that no earlier one about their subject precedes, to other endpoints than `full` (by id) and those of suspended
 * accounts, whose deliveries wait.
 */
export function deliverable(db: Queries, full: readonly string[] = []) {
  return sql<boolean>`
    not (endpoint_id ${inList(dialectOf(db), 'uuid', full)})
    and not (endpoint_id in (
      select endpoint.id from webhook_endpoints as endpoint join users on users.id = endpoint.account_id
      where users.suspended_at is not null))
    and not exists (
      select 1 from webhook_deliveries as earlier
      where earlier.state = 'pending' and earlier.endpoint_id = webhook_deliveries.endpoint_id
        and earlier.subject_id = webhook_deliveries.subject_id
        and earlier.sequence < webhook_deliveries.sequence)`
}

/** The endpoint of one account, or with `null` of any. */
export function ownEndpoint(
  db: Queries,
  accountId: string | null,
  endpointId: string,
): Promise<EndpointRow | undefined> {
  return db
    .selectFrom('webhook_endpoints')
    .selectAll()
    .where('id', '=', endpointId)
    .$if(accountId !== null, (query) => query.where('account_id', '=', accountId ?? ''))
    .where('removed_at', 'is', null)
    .executeTakeFirst()
}

/** The endpoints of one account, or with `null` of all, newest first, before the id `before`. */
export function listEndpointRows(
  db: Queries,
  accountId: string | null,
  before: string | null,
  limit: number,
): Promise<EndpointRow[]> {
  return db
    .selectFrom('webhook_endpoints')
    .selectAll()
    .where('removed_at', 'is', null)
    .$if(accountId !== null, (query) => query.where('account_id', '=', accountId ?? ''))
    .$if(before !== null, (query) => query.where('id', '<', before ?? ''))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

export function countEndpoints(db: Queries, accountId: string): Promise<number> {
  return countOf(
    db.selectFrom('webhook_endpoints').where('account_id', '=', accountId).where('removed_at', 'is', null),
  )
}

/** The enabled endpoints of these accounts. */
export async function enabledEndpoints(
  db: Queries,
  accountIds: readonly string[],
): Promise<Pick<EndpointRow, 'id' | 'account_id' | 'events'>[]> {
  if (accountIds.length === 0) return []
  return db
    .selectFrom('webhook_endpoints')
    .select(['id', 'account_id', 'events'])
    .where(sql<boolean>`account_id ${inList(dialectOf(db), 'uuid', accountIds)}`)
    .where('removed_at', 'is', null)
    .where('disabled_at', 'is', null)
    .orderBy('id')
    .execute()
}

export function endpointsById(db: Queries, ids: readonly string[]): Promise<EndpointRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  return db
    .selectFrom('webhook_endpoints')
    .selectAll()
    .where(sql<boolean>`id ${inList(dialectOf(db), 'uuid', ids)}`)
    .execute()
}

/** Notes that endpoints do not fail. */
export async function markSucceeded(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await sql`
    update webhook_endpoints set failing_since = null
    where failing_since is not null and id ${inList(dialectOf(tx), 'uuid', ids)}`.execute(tx)
}

/** Notes since when enabled endpoints fail (epoch ms), unless they failed before. */
export async function markFailing(tx: Tx, ids: readonly string[], now: number): Promise<void> {
  if (ids.length === 0) return
  await sql`
    update webhook_endpoints set failing_since = ${now}
    where failing_since is null and disabled_at is null and removed_at is null and id ${inList(dialectOf(tx), 'uuid', ids)}`.execute(
    tx,
  )
}

/** Secrets by endpoint id: the present one first, then the former one. */
export async function secretsOfEndpoints(
  db: Queries,
  endpointIds: readonly string[],
): Promise<Map<string, WebhookSecretRow[]>> {
  if (endpointIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('webhook_secrets')
    .selectAll()
    .where(sql<boolean>`endpoint_id ${inList(dialectOf(db), 'uuid', endpointIds)}`)
    .orderBy(sql`valid_until is not null`)
    .orderBy('id', 'desc')
    .execute()
  return Map.groupBy(rows, (row) => row.endpoint_id)
}

/** A secret with its endpoint's account. */
export type OwnedSecretRow = WebhookSecretRow & { account_id: string }

/** Selects all endpoints' secrets; see `Sealing.rows`. */
export const ALL_SECRETS = sql`select sealed.*, endpoint.account_id
  from webhook_secrets as sealed join webhook_endpoints as endpoint on endpoint.id = sealed.endpoint_id`

export async function insertSecret(tx: Tx, row: WebhookSecretRow): Promise<void> {
  await tx.insertInto('webhook_secrets').values(row).execute()
}

export async function deleteSecrets(tx: Tx, endpointId: string): Promise<void> {
  await tx.deleteFrom('webhook_secrets').where('endpoint_id', '=', endpointId).execute()
}

export const insertDeliveries = bulkInsert<DeliveryRow>('webhook_deliveries', {
  id: 'uuid',
  endpoint_id: 'uuid',
  event_id: 'uuid',
  subject_id: 'uuid',
  sequence: 'int',
  state: 'text',
  attempts: 'int',
  due_at: 'bigint',
  lease_until: 'bigint',
  lease_token: 'text',
  attempted_at: 'bigint',
  response_status: 'int',
  response_body: 'text',
  error: 'text',
  attempt_log: 'json',
  created_at: 'bigint',
  finished_at: 'bigint',
  row_digest: 'text',
})

/** An endpoint's deliveries, newest first, before the id `before`. */
export function deliveriesOf(
  db: Queries,
  endpointId: string,
  { state, before, limit }: { state: DeliveryState | undefined; before: string | null; limit: number },
): Promise<ShownDelivery[]> {
  return shownDeliveries(db)
    .where('delivery.endpoint_id', '=', endpointId)
    .$if(state !== undefined, (query) => query.where('state', '=', state ?? 'pending'))
    .$if(before !== null, (query) => query.where('delivery.id', '<', before ?? ''))
    .orderBy('delivery.id', 'desc')
    .limit(limit)
    .execute()
}

function shownDeliveries(db: Queries) {
  return db
    .selectFrom('webhook_deliveries as delivery')
    .innerJoin('outbox_events as event', 'event.id', 'delivery.event_id')
    .selectAll('delivery')
    .select('event.type as event_type')
}

/** The number of an endpoint's deliveries by state. */
export async function countDeliveries(
  db: Queries,
  endpointId: string,
): Promise<Record<DeliveryState, number>> {
  const rows = await db
    .selectFrom('webhook_deliveries')
    .select((eb) => ['state', eb.fn.countAll<number>().as('deliveries')])
    .where('endpoint_id', '=', endpointId)
    .groupBy('state')
    .execute()
  const counts = Object.fromEntries(rows.map(({ state, deliveries }) => [state, Number(deliveries)]))
  return { pending: 0, delivered: 0, failed: 0, ...counts }
}

/** A delivery of one of the account's endpoints. */
export function ownDelivery(
  db: Queries,
  accountId: string,
  deliveryId: string,
): Promise<ShownDelivery | undefined> {
  return shownDeliveries(db)
    .innerJoin('webhook_endpoints as endpoint', 'endpoint.id', 'delivery.endpoint_id')
    .where('delivery.id', '=', deliveryId)
    .where('endpoint.account_id', '=', accountId)
    .where('endpoint.removed_at', 'is', null)
    .executeTakeFirst()
}

/** Makes a delivery due at `now` (epoch ms) with all of its attempts; a lease on it ends. */
export function restartDelivery(tx: Tx, deliveryId: string, now: number): Promise<DeliveryRow> {
  return tx
    .updateTable('webhook_deliveries')
    .set({
      state: 'pending',
      attempts: 0,
      due_at: now,
      lease_until: 0,
      lease_token: null,
      finished_at: null,
    })
    .where('id', '=', deliveryId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Fails the endpoint's pending deliveries; leases on them end. */
export async function failPending(tx: Tx, endpointId: string, error: string, now: number): Promise<void> {
  await tx
    .updateTable('webhook_deliveries')
    .set({ state: 'failed', lease_token: null, lease_until: 0, error, finished_at: now })
    .where('endpoint_id', '=', endpointId)
    .where('state', '=', 'pending')
    .execute()
}

/** Which of these events the endpoint has deliveries of. */
export async function deliveredEvents(
  db: Queries,
  endpointId: string,
  eventIds: readonly string[],
): Promise<DeliveryRow[]> {
  if (eventIds.length === 0) return []
  return db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where(sql<boolean>`event_id ${inList(dialectOf(db), 'uuid', eventIds)}`)
    .where('endpoint_id', '=', endpointId)
    .execute()
}

/** Removes up to `limit` deliveries of events with ids below `below`; returns how many. */
export async function deleteDeliveriesBelow(tx: Tx, below: string, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from webhook_deliveries where id in (
      select id from webhook_deliveries where event_id < ${below} order by event_id limit ${limit})`.execute(
    tx,
  )
  return Number(numAffectedRows ?? 0)
}
