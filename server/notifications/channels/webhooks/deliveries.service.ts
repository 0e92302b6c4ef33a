import { sql } from 'kysely'
import { TEST_EVENT } from '../../../../shared/schemas/webhooks.ts'
import { recordAudit } from '../../../flags/audit.service.ts'
import { type PageRequest, pageById } from '../../../platform/api/page.ts'
import { Refusal } from '../../../platform/api/refusal.ts'
import { isoTime } from '../../../platform/clock.ts'
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
  deliveriesOf,
  deliveriesOfEvents,
  enabledEndpoints,
  insertDeliveries,
  ownDelivery,
  ownEndpoint,
  restartDeliveries,
  type ShownDelivery,
} from './webhooks.store.ts'

/** The signal for deliveries that are due now. */
export const DELIVERY_SIGNAL = 'webhook deliveries'

const BATCH = 500

/** Queues a delivery of each event for every endpoint of its account that receives such events. */
export const webhookChannel: Channel = {
  async enqueue(platform, tx, events) {
    const endpoints = await enabledEndpoints(tx, [...new Set(events.map(({ account_id }) => account_id))])
    const byAccount = Map.groupBy(
      endpoints.map((endpoint) => ({ ...endpoint, types: eventTypesOf(endpoint) })),
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
) {
  const { reader } = platform.database
  if (!(await ownEndpoint(reader, accountId, endpointId))) throw endpointNotFound()
  return pageById(request, (page) => deliveriesOf(reader, endpointId, { state, ...page }))
}

/** The newest deliveries of an endpoint and their number by state, for operators. */
export async function deliveryOverview(
  { database: { reader } }: Platform,
  endpointId: string,
  limit: number,
) {
  const newest = await deliveriesOf(reader, endpointId, { before: null, limit })
  return { counts: await countDeliveries(reader, endpointId), newest }
}

/**
 * How many deliveries wait, up to `most`, and when the first was due (epoch ms); endpoints that fail, which get one at a time, do not count
 * for that.
 */
export async function deliveryBacklog(db: Queries, most: number) {
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
    await refuseDisabled(tx, accountId, delivery.endpoint_id)
    afterCommit(tx, () => platform.topics.send(DELIVERY_SIGNAL))
    const [restarted] = await restartDeliveries(tx, [delivery.id], platform.clock.now())
    return { ...delivery, ...restarted }
  })
}

/** Queues a test event for one endpoint. Refuses with `not_found` and `conflict` (a disabled endpoint). */
export async function sendTestEvent(
  platform: Platform,
  accountId: string,
  endpointId: string,
): Promise<ShownDelivery> {
  return platform.database.transaction(async (tx) => {
    await refuseDisabled(tx, accountId, endpointId)
    // Each test is a subject of its own, so that it does not wait for one that failed.
    const subjectId = platform.ids.next()
    const event = { type: TEST_EVENT, accountId, subjectId, data: { endpoint_id: endpointId } } as const
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
  const types = eventTypesOf(endpoint)
  const oldest = oldestKeptEvent(platform)
  let after: string = NIL_ID
  let events = 0
  for (let isLast = false; !isLast; ) {
    const from = { accountId: endpoint.account_id, since, after: after > oldest ? after : oldest }
    events += await platform.database.transaction(async (tx) => {
      // Two replays would each add a delivery of an event that the endpoint never had.
      await advisoryLock(tx, `replay ${endpointId}`)
      await refuseDisabled(tx, null, endpointId)
      const page = await eventsSince(tx, from, BATCH)
      isLast = page.length < BATCH
      after = page.at(-1)?.id ?? after
      const { authentic } = splitRows(platform.keys, 'outbox_events', page)
      return queueAgain(
        platform,
        tx,
        endpointId,
        authentic.filter(({ type }) => types.has(type)),
      )
    })
  }
  await platform.database.transaction((tx) =>
    recordAudit(platform, tx, {
      actor,
      action: 'webhook_endpoint.replay',
      subjectType: 'webhook_endpoint',
      subjectId: endpointId,
      after: { since: isoTime(since), events },
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
  const eventIds = events.map(({ id }) => id)
  const former = await deliveriesOfEvents(tx, endpointId, eventIds)
  const known = new Set(former.map(({ event_id }) => event_id))
  const fresh = events.filter(({ id }) => !known.has(id))
  const finished = former.flatMap(({ id, state }) => (state === 'pending' ? [] : [id]))
  await restartDeliveries(tx, finished, platform.clock.now())
  await insertDeliveries(
    tx,
    fresh.map((event) => newDelivery(platform, endpointId, event)),
  )
  afterCommit(tx, () => platform.topics.send(DELIVERY_SIGNAL))
  return fresh.length + finished.length
}

/** Removes the deliveries of events that are past their retention, in small transactions. */
export async function removeOldDeliveries(platform: Platform): Promise<void> {
  const below = oldestKeptEvent(platform)
  const removeBatch = () => platform.database.transaction((tx) => deleteDeliveriesBelow(tx, below, BATCH))
  while ((await removeBatch()) === BATCH);
}

/** Refuses an endpoint that is disabled, or not the account's; with `null` of any account. */
async function refuseDisabled(tx: Tx, accountId: string | null, endpointId: string): Promise<void> {
  const endpoint = await ownEndpoint(tx, accountId, endpointId)
  if (!endpoint) throw endpointNotFound()
  if (endpoint.disabled_at === null) return
  throw new Refusal('conflict', 'The endpoint is disabled. Enable it first.')
}
