import { sql } from 'kysely'
import { TEST_EVENT } from '../../../../shared/schemas/webhooks.ts'
import { recordAudit } from '../../../flags/audit.service.ts'
import { type Page, type PageRequest, pageById } from '../../../platform/api/page.ts'
import { Refusal } from '../../../platform/api/refusal.ts'
import { advisoryLock, afterCommit, type Queries, type Tx } from '../../../platform/database/database.ts'
import { splitRows, withDigest } from '../../../platform/database/protected-rows.ts'
import { NIL_ID } from '../../../platform/ids.ts'
import type { Platform } from '../../../platform/platform.ts'
import {
  type Channel,
  eventsOf,
  type OutboxEventRow,
  oldestKeptEvent,
  publishEvents,
} from '../../outbox.service.ts'
import { eventsSince } from '../../outbox.store.ts'
import { endpointNotFound, eventTypesOf, getEndpoint } from './endpoints.service.ts'
import type { DeliveryState } from './webhook.entity.ts'
import {
  countDeliveries,
  DELIVERY_QUEUE,
  type DeliveryRow,
  deleteDeliveriesBelow,
  deliverable,
  deliveredEvents,
  deliveriesOf,
  enabledEndpoints,
  endpointsById,
  insertDeliveries,
  ownDelivery,
  ownEndpoint,
  restartDelivery,
  type ShownDelivery,
} from './webhooks.store.ts'

/** The signal for deliveries that are due now. */
export const DELIVERY_SIGNAL = 'webhook deliveries'

const BATCH = 500

/** Queues a delivery of each event for every endpoint of its account that receives such events. */
export const webhookChannel: Channel = {
  async enqueue(platform, tx, events) {
    const endpoints = await enabledEndpoints(tx, [...new Set(events.map(({ account_id }) => account_id))])
    if (endpoints.length === 0) return
    const byAccount = Map.groupBy(
      endpoints.map((endpoint) => ({ ...endpoint, types: new Set<string>(eventTypesOf(endpoint)) })),
      ({ account_id }) => account_id,
    )
    const rows = events.flatMap((event) =>
      (byAccount.get(event.account_id) ?? [])
        .filter(({ types }) => types.has(event.type))
        .map(({ id }) => newDelivery(platform, id, event)),
    )
    await addDeliveries(platform, tx, rows)
  },
}

async function addDeliveries(platform: Platform, tx: Tx, rows: readonly DeliveryRow[]): Promise<void> {
  if (rows.length === 0) return
  await insertDeliveries(tx, rows)
  afterCommit(tx, () => platform.topics.send(DELIVERY_SIGNAL))
}

function newDelivery(platform: Platform, endpointId: string, event: OutboxEventRow): DeliveryRow {
  const now = platform.clock.now()
  return withDigest(platform.keys, 'webhook_deliveries', {
    id: platform.ids.next(),
    endpoint_id: endpointId,
    event_id: event.id,
    subject_id: event.subject_id,
    sequence: event.sequence,
    state: 'pending',
    attempts: 0,
    due_at: now,
    lease_until: 0,
    lease_token: null,
    attempted_at: null,
    response_status: null,
    response_body: null,
    error: null,
    attempt_log: null,
    created_at: now,
    finished_at: null,
  })
}

/** An endpoint's deliveries of the last 30 days, newest first. Refuses with `not_found`. */
export async function listDeliveries(
  platform: Platform,
  accountId: string,
  endpointId: string,
  { state, ...request }: { state?: DeliveryState | undefined } & PageRequest,
): Promise<Page<ShownDelivery>> {
  const { reader } = platform.database
  if (!(await ownEndpoint(reader, accountId, endpointId))) throw endpointNotFound()
  return pageById(request, (request) => deliveriesOf(reader, endpointId, { state, ...request }))
}

/** The newest deliveries of an endpoint and their number by state, for operators. */
export async function deliveryOverview(
  { database: { reader } }: Platform,
  endpointId: string,
  limit: number,
): Promise<{ counts: Record<DeliveryState, number>; newest: ShownDelivery[] }> {
  const newest = await deliveriesOf(reader, endpointId, { state: undefined, before: null, limit })
  return { counts: await countDeliveries(reader, endpointId), newest }
}

/**
 * How many deliveries wait, up to `most`, and when the first was due (epoch ms); endpoints that fail, which get one at a time, do not count
 * for that.
 */
export async function deliveryBacklog(
  db: Queries,
  most: number,
): Promise<{ waiting: number; firstDue: number | null }> {
  const isFailing = sql`endpoint_id in (select id from webhook_endpoints where failing_since is not null)`
  return {
    waiting: await DELIVERY_QUEUE.countOpen(db, most),
    firstDue: await DELIVERY_QUEUE.nextDueAt(db, sql<boolean>`${deliverable(db)} and not (${isFailing})`),
  }
}

/**
 * Makes a delivery due now, with all of its attempts, whatever came of it before; receivers know a repeated event by its id. Refuses with
 * `not_found` and `conflict` (a disabled endpoint).
 */
export async function retryDelivery(
  platform: Platform,
  accountId: string,
  deliveryId: string,
): Promise<ShownDelivery> {
  return platform.database.transaction(async (tx) => {
    const delivery = await ownDelivery(tx, accountId, deliveryId)
    if (!delivery) throw new Refusal('not_found', 'Webhook delivery not found.')
    await refuseDisabled(tx, delivery.endpoint_id)
    afterCommit(tx, () => platform.topics.send(DELIVERY_SIGNAL))
    return { ...delivery, ...(await restartDelivery(tx, delivery.id, platform.clock.now())) }
  })
}

/** Queues a test event for one endpoint. Refuses with `not_found` and `conflict` (a disabled endpoint). */
export async function sendTestEvent(
  platform: Platform,
  accountId: string,
  endpointId: string,
): Promise<ShownDelivery> {
  return platform.database.transaction(async (tx) => {
    if (!(await ownEndpoint(tx, accountId, endpointId))) throw endpointNotFound()
    await refuseDisabled(tx, endpointId)
    // Each test is a subject of its own, so that it does not wait for one that failed.
    const event = {
      type: TEST_EVENT,
      accountId,
      subjectId: platform.ids.next(),
      data: { endpoint_id: endpointId },
    } as const
    const ids = await publishEvents(platform, tx, [event], { distributed: true })
    const [published] = [...(await eventsOf(tx, ids)).values()]
    const delivery = newDelivery(platform, endpointId, published as OutboxEventRow)
    await addDeliveries(platform, tx, [delivery])
    return { ...delivery, event_type: TEST_EVENT }
  })
}

/**
 * Sends the events since `since` (epoch ms) of the endpoint's types again, those that it never had too, for an operator. Deliveries
 * that are pending stay as they are. Returns how many it queued. Refuses with `not_found` and `conflict` (a disabled endpoint).
 */
export async function replayEvents(
  platform: Platform,
  endpointId: string,
  { since, actor }: { since: number; actor: string },
): Promise<{ events: number }> {
  const endpoint = await getEndpoint(platform, null, endpointId)
  const types = new Set<string>(eventTypesOf(endpoint))
  const oldest = oldestKeptEvent(platform)
  let after: string = NIL_ID
  let events = 0
  for (let isLast = false; !isLast; ) {
    const from = { accountId: endpoint.account_id, since, after: after > oldest ? after : oldest }
    events += await platform.database.transaction(async (tx) => {
      // Two replays would each add a delivery of an event that the endpoint never had.
      await advisoryLock(tx, `replay ${endpointId}`)
      await refuseDisabled(tx, endpointId)
      const page = await eventsSince(tx, from, BATCH)
      isLast = page.length < BATCH
      after = page.at(-1)?.id ?? after
      return queueAgain(
        platform,
        tx,
        endpointId,
        splitRows(platform.keys, 'outbox_events', page).authentic.filter(({ type }) => types.has(type)),
      )
    })
  }
  await platform.database.transaction((tx) =>
    recordAudit(platform, tx, {
      actor,
      action: 'webhook_endpoint.replay',
      subjectType: 'webhook_endpoint',
      subjectId: endpointId,
      after: { since: new Date(since).toISOString(), events },
    }),
  )
  return { events }
}

/** Returns how many deliveries it made due. */
async function queueAgain(
  platform: Platform,
  tx: Tx,
  endpointId: string,
  events: readonly OutboxEventRow[],
): Promise<number> {
  const former = await deliveredEvents(
    tx,
    endpointId,
    events.map(({ id }) => id),
  )
  const known = new Set(former.map(({ event_id }) => event_id))
  const fresh = events
    .filter(({ id }) => !known.has(id))
    .map((event) => newDelivery(platform, endpointId, event))
  const finished = former.filter(({ state }) => state !== 'pending')
  for (const { id } of finished) await restartDelivery(tx, id, platform.clock.now())
  await addDeliveries(platform, tx, fresh)
  afterCommit(tx, () => platform.topics.send(DELIVERY_SIGNAL))
  return fresh.length + finished.length
}

/** Removes the deliveries of events that are past their retention, in small transactions. */
export async function removeOldDeliveries(platform: Platform): Promise<void> {
  const below = oldestKeptEvent(platform)
  const removeBatch = () => platform.database.transaction((tx) => deleteDeliveriesBelow(tx, below, BATCH))
  while ((await removeBatch()) === BATCH);
}

async function refuseDisabled(tx: Tx, endpointId: string): Promise<void> {
  const [endpoint] = await endpointsById(tx, [endpointId])
  if (!endpoint || endpoint.removed_at !== null) throw endpointNotFound()
  if (endpoint.disabled_at !== null) {
    throw new Refusal('conflict', 'The endpoint is disabled. Enable it first.')
  }
}
