import { type Selectable, sql } from 'kysely'
import type { WebhookDelivery } from '../../../../shared/schemas/webhooks.ts'
import { bulkInsert, countOf, inList, newestFirst } from '../../../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../../../platform/database/database.ts'
import type { Schema } from '../../../platform/database/schema.ts'
import { LeaseQueue } from '../../../platform/queue/lease-queue.ts'
import { LONGEST_DELAY_MS } from './delivery-retry.rule.ts'
import type { DeliveryState } from './webhook.entity.ts'

export type EndpointRow = Selectable<Schema['webhook_endpoints']>
type WebhookSecretRow = Selectable<Schema['webhook_secrets']>
export type DeliveryRow = Selectable<Schema['webhook_deliveries']>
/** A delivery with the type of its event. */
export type ShownDelivery = DeliveryRow & Pick<WebhookDelivery, 'event_type'>

interface PageBefore {
  before: string | null
  limit: number
}

/** Deliveries to be made. */
export const DELIVERY_QUEUE = new LeaseQueue<DeliveryRow>({
  name: 'webhook_deliveries',
  isOpen: sql`state = 'pending'`,
  dueAt: 'due_at',
  leaseUntil: 'lease_until',
  attempts: 'attempts',
  maxDelayMs: LONGEST_DELAY_MS,
})

/** A condition on a column with ids. */
const isOne = (db: Queries | Tx, column: string, ids: readonly string[]) =>
  sql<boolean>`${sql.ref(column)} ${inList(dialectOf(db), 'uuid', ids)}`

/**
 * Holds for deliveries that no earlier one about their subject precedes, to other endpoints than `full` (by id) and those of suspended
 * accounts, whose deliveries wait.
 */
export function deliverable(db: Queries, full: readonly string[] = []) {
  return sql<boolean>`
    not (${isOne(db, 'endpoint_id', full)})
    and not (endpoint_id in (
      select endpoint.id from webhook_endpoints as endpoint join users on users.id = endpoint.account_id
      where users.suspended_at is not null))
    and not exists (
      select 1 from webhook_deliveries as earlier
      where earlier.state = 'pending' and earlier.endpoint_id = webhook_deliveries.endpoint_id
        and earlier.subject_id = webhook_deliveries.subject_id
        and earlier.sequence < webhook_deliveries.sequence)`
}

/** The endpoints of one account, or with `null` of any. */
function endpointsOf(db: Queries, accountId: string | null) {
  const endpoints = db.selectFrom('webhook_endpoints').selectAll().where('removed_at', 'is', null)
  return accountId === null ? endpoints : endpoints.where('account_id', '=', accountId)
}

export function ownEndpoint(db: Queries, accountId: string | null, endpointId: string) {
  return endpointsOf(db, accountId).where('id', '=', endpointId).executeTakeFirst()
}

export function pageOfEndpoints(db: Queries, accountId: string | null, page: PageBefore) {
  return newestFirst(endpointsOf(db, accountId), page)
}

export function countEndpoints(db: Queries, accountId: string) {
  const ofAccount = db.selectFrom('webhook_endpoints').where('account_id', '=', accountId)
  return countOf(ofAccount.where('removed_at', 'is', null))
}

/** The enabled endpoints of these accounts. */
export async function enabledEndpoints(db: Queries, accountIds: readonly string[]) {
  if (accountIds.length === 0) return []
  return db
    .selectFrom('webhook_endpoints')
    .select(['id', 'account_id', 'events'])
    .where(isOne(db, 'account_id', accountIds))
    .where('removed_at', 'is', null)
    .where('disabled_at', 'is', null)
    .orderBy('id')
    .execute()
}

export async function endpointsById(db: Queries, ids: readonly string[]) {
  if (ids.length === 0) return []
  return db
    .selectFrom('webhook_endpoints')
    .selectAll()
    .where(isOne(db, 'id', ids))
    .execute()
}

/** Notes that endpoints do not fail. */
export async function markSucceeded(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const failing = tx.updateTable('webhook_endpoints').set({ failing_since: null })
  await failing
    .where('failing_since', 'is not', null)
    .where(isOne(tx, 'id', ids))
    .execute()
}

/** Notes since when enabled endpoints fail (epoch ms), unless they failed before. */
export async function markFailing(tx: Tx, ids: readonly string[], now: number): Promise<void> {
  if (ids.length === 0) return
  await tx
    .updateTable('webhook_endpoints')
    .set({ failing_since: now })
    .where('failing_since', 'is', null)
    .where('disabled_at', 'is', null)
    .where('removed_at', 'is', null)
    .where(isOne(tx, 'id', ids))
    .execute()
}

/** A secret with its endpoint's account. */
export type OwnedSecretRow = WebhookSecretRow & Pick<EndpointRow, 'account_id'>

/** Selects all endpoints' secrets; see `Sealing.rows`. */
export const OWNED_SECRETS = sql<OwnedSecretRow>`select sealed.*, endpoint.account_id
  from webhook_secrets as sealed join webhook_endpoints as endpoint on endpoint.id = sealed.endpoint_id`

/** These endpoints' secrets: present ones first, then former ones from the newest. */
export async function secretsOf(db: Queries, endpointIds: readonly string[]) {
  if (endpointIds.length === 0) return []
  const { rows } = await sql<OwnedSecretRow>`
    ${OWNED_SECRETS} where ${isOne(db, 'endpoint_id', endpointIds)}
    order by valid_until is not null, sealed.id desc`.execute(db)
  return rows
}

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

function shownDeliveries(db: Queries) {
  return db
    .selectFrom('webhook_deliveries as delivery')
    .innerJoin('outbox_events as event', 'event.id', 'delivery.event_id')
    .selectAll('delivery')
    .select(({ ref }) => ref('event.type').$castTo<WebhookDelivery['event_type']>().as('event_type'))
}

/** An endpoint's deliveries, of one state if given. */
export function deliveriesOf(
  db: Queries,
  endpointId: string,
  { state, ...page }: { state?: DeliveryState | undefined } & PageBefore,
) {
  const ofEndpoint = shownDeliveries(db).where('delivery.endpoint_id', '=', endpointId)
  return newestFirst(state ? ofEndpoint.where('state', '=', state) : ofEndpoint, page, sql.ref('delivery.id'))
}

/** The number of an endpoint's deliveries by state. */
export async function countDeliveries(db: Queries, endpointId: string) {
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
export function ownDelivery(db: Queries, accountId: string, deliveryId: string) {
  return shownDeliveries(db)
    .innerJoin('webhook_endpoints as endpoint', 'endpoint.id', 'delivery.endpoint_id')
    .where('delivery.id', '=', deliveryId)
    .where('endpoint.account_id', '=', accountId)
    .where('endpoint.removed_at', 'is', null)
    .executeTakeFirst()
}

const NO_LEASE = { lease_until: 0, lease_token: null }

/** Makes deliveries due at `now` (epoch ms) with all of their attempts; leases on them end. */
export function restartDeliveries(tx: Tx, ids: readonly string[], now: number) {
  const again = { ...NO_LEASE, state: 'pending', attempts: 0, due_at: now, finished_at: null } as const
  return tx
    .updateTable('webhook_deliveries')
    .set(again)
    .where(isOne(tx, 'id', ids))
    .returningAll()
    .execute()
}

/** Fails the endpoint's pending deliveries; leases on them end. */
export async function failPending(tx: Tx, endpointId: string, error: string, now: number): Promise<void> {
  const failed = { ...NO_LEASE, state: 'failed', error, finished_at: now } as const
  const pending = tx.updateTable('webhook_deliveries').set(failed).where('state', '=', 'pending')
  await pending.where('endpoint_id', '=', endpointId).execute()
}

/** The endpoint's deliveries of these events. */
export async function deliveriesOfEvents(db: Queries, endpointId: string, eventIds: readonly string[]) {
  if (eventIds.length === 0) return []
  const ofEvents = db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where(isOne(db, 'event_id', eventIds))
  return ofEvents.where('endpoint_id', '=', endpointId).execute()
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
