import { isoTime } from '../../../platform/clock.ts'
import type { ColumnTypes } from '../../../platform/database/bulk-values.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { rowProblem } from '../../../platform/database/protected-rows.ts'
import type { Platform } from '../../../platform/platform.ts'
import { Deliverer, firstForged } from '../../delivery.service.ts'
import { eventsOf, type OutboxEventRow } from '../../outbox.service.ts'
import { DELIVERY_SIGNAL } from './deliveries.service.ts'
import { type AttemptDecision, decideAttempt, hasFailedForLong } from './delivery-retry.rule.ts'
import { openValidSecrets } from './endpoint-secrets.service.ts'
import { DISABLED, disableEndpoint, SERVICE } from './endpoints.service.ts'
import { createWebhookSender, type WebhookOutcome } from './send-webhook.ts'
import type { DisabledReason } from './webhook.entity.ts'
import {
  DELIVERY_QUEUE,
  type DeliveryRow,
  deliverable,
  endpointsById,
  markFailing,
  markSucceeded,
  secretsOf,
} from './webhooks.store.ts'
import { withAttempt } from './webhooks-wire.ts'

const RESULT_COLUMNS = {
  state: 'text',
  due_at: 'bigint',
  attempted_at: 'bigint',
  response_status: 'int',
  response_body: 'text',
  error: 'text',
  attempt_log: 'json',
  finished_at: 'bigint',
} as const satisfies Partial<ColumnTypes<DeliveryRow>>

type Result = Pick<DeliveryRow, keyof typeof RESULT_COLUMNS>
type Job = Awaited<ReturnType<typeof load>>[number]

interface Outcome extends WebhookOutcome {
  decision: AttemptDecision
  at: number
  durationMs: number
}

/** What a process delivers to webhook endpoints. */
export function webhookDeliverer(
  platform: Platform,
  sender = createWebhookSender({ allowLoopback: platform.config.NODE_ENV !== 'production' }),
) {
  const { clock } = platform
  const send = ({ endpoint, event, secrets }: Job) => {
    const keys = openValidSecrets(platform, secrets).map(({ text }) => text)
    if (!endpoint || !event || keys.length === 0)
      return notSent('The secret of the endpoint cannot be opened. Rotate it.')
    const { url } = endpoint
    return sender.send({ url, eventId: event.id, body: bodyOf(event), secrets: keys, now: clock.now() })
  }
  return new Deliverer<DeliveryRow, Job, Outcome, Result>(platform, {
    queue: DELIVERY_QUEUE,
    signal: DELIVERY_SIGNAL,
    leaseMs: 60_000,
    graceMs: 5000,
    laneOf: ({ endpoint_id }) => endpoint_id,
    mostAtOnce: 20,
    only: deliverable,
    async owners(tx, ids) {
      const endpoints = await endpointsById(tx, ids)
      return new Map(
        endpoints.map((endpoint) => [
          endpoint.id,
          { account: endpoint.account_id, failing: endpoint.failing_since !== null },
        ]),
      )
    },
    load: (rows) => load(platform, rows),
    async attempt(job) {
      const begin = performance.now()
      const refusal = refusalOf(job)
      const sent = refusal === null ? await send(job) : notSent(refusal)
      const at = clock.now()
      const facts = { attempt: job.row.attempts, now: at, jitter: Math.random(), ...sent }
      const decision: AttemptDecision = refusal === null ? decideAttempt(facts) : { kind: 'failed' }
      return { ...sent, decision, at, durationMs: Math.round(performance.now() - begin) }
    },
    isCut: ({ status }) => status === null,
    isFailure: ({ decision }) => decision.kind !== 'delivered',
    columns: RESULT_COLUMNS,
    resultOf,
    settled: (tx, attempts) => judgeEndpoints(platform, tx, attempts),
    close: () => sender.close(),
  })
}

function notSent(error: string): WebhookOutcome {
  return { status: null, retryAfter: null, body: null, error }
}

/** Why a delivery fails without an attempt: it is forged, or was queued while its endpoint was being disabled or removed; `null` for others. */
function refusalOf({ forged, endpoint }: Job): string | null {
  if (forged) return forged.problem
  return !endpoint || endpoint.disabled_at !== null || endpoint.removed_at !== null ? DISABLED : null
}

/** The body that is signed and sent. */
function bodyOf({ type, created_at, data }: OutboxEventRow): string {
  return `{"type":${JSON.stringify(type)},"timestamp":"${isoTime(created_at)}","data":${data}}`
}

async function load(platform: Platform, rows: readonly DeliveryRow[]) {
  const { reader } = platform.database
  const ids = [...new Set(rows.map(({ endpoint_id }) => endpoint_id))]
  const endpoints = new Map((await endpointsById(reader, ids)).map((endpoint) => [endpoint.id, endpoint]))
  const secrets = Map.groupBy(await secretsOf(reader, ids), ({ endpoint_id }) => endpoint_id)
  const eventIds = rows.map(({ event_id }) => event_id)
  const events = await eventsOf(reader, eventIds)
  return rows.map((row) => {
    const endpoint = endpoints.get(row.endpoint_id)
    const event = events.get(row.event_id)
    const forged = firstForged(platform, {
      webhook_deliveries: row,
      outbox_events: event,
      webhook_endpoints: endpoint,
    })
    return { row, endpoint, event, forged, secrets: secrets.get(row.endpoint_id) ?? [] }
  })
}

function resultOf({ row, forged }: Job, outcome: Outcome): Result {
  const { decision, at, status, error, durationMs } = outcome
  const finishes = decision.kind !== 'retry'
  if (forged) return { ...row, state: 'failed', error, finished_at: at }
  return {
    state: decision.kind === 'delivered' ? 'delivered' : finishes ? 'failed' : 'pending',
    due_at: finishes ? row.due_at : decision.dueAt,
    attempted_at: at,
    response_status: status,
    response_body: outcome.body,
    error,
    attempt_log: withAttempt(row, { at, status, error, durationMs }),
    finished_at: finishes ? at : null,
  }
}

/**
 * Notes which endpoints fail, and disables those that answered 410 or have failed for days. What an address answered that was replaced
 * meanwhile says nothing about the endpoint. An endpoint that was changed outside of the service meanwhile is left alone.
 */
async function judgeEndpoints(
  platform: Platform,
  tx: Tx,
  attempts: readonly { job: Job; outcome: Outcome }[],
): Promise<void> {
  const idsOf = (some: typeof attempts) => [...new Set(some.map(({ job }) => job.row.endpoint_id))].sort()
  const rows = await endpointsById(tx, idsOf(attempts))
  const authentic = rows.filter((row) => rowProblem(platform.keys, 'webhook_endpoints', row) === null)
  const endpoints = new Map(authentic.map((row) => [row.id, row]))
  const judged = attempts.filter(
    ({ job: { row, endpoint } }) => endpoints.get(row.endpoint_id)?.url === endpoint?.url,
  )
  const decided = (kind: AttemptDecision['kind']) =>
    idsOf(judged.filter(({ outcome }) => outcome.decision.kind === kind))
  const succeeded = decided('delivered')
  const failed = idsOf(judged).filter((id) => !succeeded.includes(id))
  const now = platform.clock.now()
  await markSucceeded(tx, succeeded)
  await markFailing(tx, failed, now)
  const disable = (endpointId: string, reason: DisabledReason, note: string) =>
    disableEndpoint(platform, tx, { endpointId, reason, actor: SERVICE, note })
  for (const id of decided('gone')) await disable(id, 'gone', 'It answered 410.')
  for (const id of failed) {
    const since = endpoints.get(id)?.failing_since ?? null
    if (hasFailedForLong(since, now)) await disable(id, 'failing', 'It failed for 5 days.')
  }
}
