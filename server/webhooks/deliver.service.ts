import { randomUUID } from 'node:crypto'
import { eventsOf, type OutboxEventRow } from '../outbox/outbox.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { ColumnTypes } from '../platform/database/bulk-values.ts'
import type { Tx } from '../platform/database/database.ts'
import { GroupCommit } from '../platform/database/group-commit.ts'
import type { Platform } from '../platform/platform.ts'
import { DELIVERY_SIGNAL } from './deliveries.service.ts'
import { type AttemptDecision, decideAttempt, hasFailedForLong } from './delivery-retry.rule.ts'
import { validSecrets } from './endpoint-secrets.service.ts'
import { disableEndpoint, SERVICE } from './endpoints.service.ts'
import { createWebhookSender, type WebhookOutcome, type WebhookSender } from './send-webhook.ts'
import type { DisabledReason } from './webhook.entity.ts'
import {
  DELIVERY_QUEUE,
  type DeliveryRow,
  deliverable,
  type EndpointRow,
  endpointsById,
  markFailing,
  markSucceeded,
  type NotNow,
  secretsOfEndpoints,
  type WebhookSecretRow,
} from './webhooks.store.ts'

/** Longer than an attempt and the write of its outcome take. */
const LEASE_MS = 60_000
/** Attempts of this process at the same time. */
const MOST_AT_ONCE = 100
/** To one endpoint. */
const MOST_TO_ENDPOINT = 20
/** To one endpoint whose last attempt failed: it must not take the places of others. */
const MOST_TO_FAILING_ENDPOINT = 1
/** To all of those. */
const MOST_TO_FAILING = 50
/** How long `stop` waits for attempts under way, ms. */
const STOP_AFTER_MS = 5000
const WRITE_TIMEOUT_MS = 30_000

type Claimed = DeliveryRow & { token: string }

interface Attempt {
  delivery: Claimed
  endpoint: EndpointRow | undefined
  event: OutboxEventRow | undefined
  secrets: readonly WebhookSecretRow[]
}

interface Finished {
  delivery: Claimed
  outcome: WebhookOutcome
  decision: AttemptDecision
  at: number
}

type Result = Pick<
  DeliveryRow,
  'state' | 'due_at' | 'attempted_at' | 'response_status' | 'response_body' | 'error' | 'finished_at'
>

const RESULT_COLUMNS: ColumnTypes<Result> = {
  state: 'text',
  due_at: 'bigint',
  attempted_at: 'bigint',
  response_status: 'int',
  response_body: 'text',
  error: 'text',
  finished_at: 'bigint',
}

/** The deliveries that this process is making. */
export class WebhookDeliverer {
  readonly #platform: Platform
  readonly #sender: WebhookSender
  readonly #results: GroupCommit<Finished, null>
  readonly #underWay = new Map<string, { count: number; failing: boolean }>()
  readonly #attempts = new Set<Promise<void>>()
  #stopped = false

  constructor(
    platform: Platform,
    sender = createWebhookSender({ allowLoopback: platform.config.NODE_ENV !== 'production' }),
  ) {
    this.#platform = platform
    this.#sender = sender
    this.#results = new GroupCommit({
      write: (finished) => settle(platform, finished),
      maxBatch: MOST_AT_ONCE,
      maxWaiting: 2 * MOST_AT_ONCE,
      timeoutMs: WRITE_TIMEOUT_MS,
    })
  }

  /** Claims due deliveries, as many as there is room for, and begins to send them. Returns how many. */
  async start(): Promise<number> {
    const room = MOST_AT_ONCE - this.#attempts.size
    if (room <= 0 || this.#stopped) return 0
    const { database, clock } = this.#platform
    const now = clock.now()
    const token = randomUUID()
    const claimed = await DELIVERY_QUEUE.claim(database, {
      now,
      limit: room,
      lease: { token, until: now + LEASE_MS },
      only: deliverable(database.reader, this.#notNow()),
      choose: (tx, due) => this.#choose(tx, due),
    })
    const deliveries = claimed.map((row) => ({ ...row, token, attempts: row.attempts + 1 }))
    for (const attempt of await loadAttempts(this.#platform, deliveries)) this.#begin(attempt)
    return claimed.length
  }

  /** When a delivery is due that this process has room for, epoch ms; `null` without one. */
  async nextDueAt(): Promise<number | null> {
    if (this.#attempts.size >= MOST_AT_ONCE) return null
    const { reader } = this.#platform.database
    return DELIVERY_QUEUE.nextDueAt(reader, deliverable(reader, this.#notNow()))
  }

  /** Resolves when no attempt is under way. */
  async idle(): Promise<void> {
    while (this.#attempts.size > 0) await Promise.all(this.#attempts)
  }

  /** Waits some seconds for attempts under way, then ends them: their deliveries are due again. */
  async stop(): Promise<void> {
    this.#stopped = true
    const timer = setTimeout(() => void this.#sender.close(), STOP_AFTER_MS)
    await this.idle()
    clearTimeout(timer)
    await this.#sender.close()
  }

  #notNow(): NotNow {
    const endpoints = [...this.#underWay].filter(([, { count, failing }]) => count >= mostTo(failing))
    return { endpoints: endpoints.map(([id]) => id), failing: this.#failing() >= MOST_TO_FAILING }
  }

  #failing(): number {
    return [...this.#underWay.values()].reduce((sum, { count, failing }) => sum + (failing ? count : 0), 0)
  }

  async #choose(tx: Tx, due: readonly DeliveryRow[]): Promise<DeliveryRow[]> {
    const endpoints = await endpointsById(tx, [...new Set(due.map(({ endpoint_id }) => endpoint_id))])
    const failing = new Set(endpoints.filter((row) => row.failing_since !== null).map(({ id }) => id))
    const counts = new Map([...this.#underWay].map(([id, { count }]) => [id, count]))
    let places = MOST_TO_FAILING - this.#failing()
    return due.filter(({ endpoint_id: id }) => {
      const count = counts.get(id) ?? 0
      if (count >= mostTo(failing.has(id)) || (failing.has(id) && places <= 0)) return false
      if (failing.has(id)) places -= 1
      counts.set(id, count + 1)
      return true
    })
  }

  #begin(attempt: Attempt): void {
    const { endpoint_id: id } = attempt.delivery
    const entry = this.#underWay.get(id) ?? { count: 0, failing: false }
    entry.failing = attempt.endpoint?.failing_since != null
    entry.count += 1
    this.#underWay.set(id, entry)
    const running = this.#deliver(attempt).finally(() => {
      this.#attempts.delete(running)
      entry.count -= 1
      if (entry.count === 0) this.#underWay.delete(id)
      this.#platform.signals.send(DELIVERY_SIGNAL)
    })
    this.#attempts.add(running)
  }

  async #deliver({ delivery, endpoint, event, secrets }: Attempt): Promise<void> {
    const { clock, log } = this.#platform
    const keys = endpoint ? validSecrets(this.#platform, endpoint, secrets) : []
    const outcome =
      endpoint && event && keys.length > 0
        ? await this.#sender.send({
            url: endpoint.url,
            eventId: event.id,
            body: bodyOf(event),
            secrets: keys,
            now: clock.now(),
          })
        : NOT_SIGNED
    try {
      if (this.#stopped && outcome.status === null) return await this.#release(delivery)
      const at = clock.now()
      const { status, retryAfter } = outcome
      const facts = { attempt: delivery.attempts, status, retryAfter, now: at, jitter: Math.random() }
      await this.#results.add({ delivery, outcome, decision: decideAttempt(facts), at })
    } catch (error) {
      log.error({ err: error, delivery: delivery.id }, 'the outcome of a webhook delivery was not written')
    }
  }

  #release({ id, token }: Claimed): Promise<void> {
    return this.#platform.database.transaction((tx) => DELIVERY_QUEUE.release(tx, token, [id]))
  }
}

/** Sends all that is due, until nothing is: for tests and commands. */
export async function deliverUntilIdle(deliverer: WebhookDeliverer): Promise<number> {
  let sent = 0
  for (;;) {
    const started = await deliverer.start()
    if (started === 0) return sent
    sent += started
    await deliverer.idle()
  }
}

const NOT_SIGNED: WebhookOutcome = {
  status: null,
  retryAfter: null,
  body: null,
  error: 'The secret of the endpoint cannot be opened. Rotate it.',
}

function mostTo(failing: boolean): number {
  return failing ? MOST_TO_FAILING_ENDPOINT : MOST_TO_ENDPOINT
}

/** The body that is signed and sent. */
export function bodyOf({
  type,
  created_at,
  data,
}: Pick<OutboxEventRow, 'type' | 'created_at' | 'data'>): string {
  return `{"type":${JSON.stringify(type)},"timestamp":"${isoTime(created_at)}","data":${data}}`
}

async function loadAttempts({ database }: Platform, deliveries: readonly Claimed[]): Promise<Attempt[]> {
  if (deliveries.length === 0) return []
  const { reader } = database
  const ids = [...new Set(deliveries.map(({ endpoint_id }) => endpoint_id))]
  const endpoints = new Map((await endpointsById(reader, ids)).map((endpoint) => [endpoint.id, endpoint]))
  const secrets = await secretsOfEndpoints(reader, ids)
  const events = await eventsOf(
    reader,
    deliveries.map(({ event_id }) => event_id),
  )
  return deliveries.map((delivery) => ({
    delivery,
    endpoint: endpoints.get(delivery.endpoint_id),
    event: events.get(delivery.event_id),
    secrets: secrets.get(delivery.endpoint_id) ?? [],
  }))
}

/** Writes the outcomes of attempts. A delivery that was disabled or retried meanwhile stays as it is. */
async function settle(platform: Platform, finished: readonly Finished[]): Promise<null[]> {
  await platform.database.transaction(async (tx) => {
    const results = finished.map(({ delivery, ...rest }) => ({
      row_id: delivery.id,
      token: delivery.token,
      ...resultOf(delivery, rest),
    }))
    const statement = DELIVERY_QUEUE.completeManyStatement<Result>(tx, RESULT_COLUMNS, results)
    const held = new Set((await statement.execute(tx)).rows.map(({ id }) => id))
    await judgeEndpoints(
      platform,
      tx,
      finished.filter(({ delivery }) => held.has(delivery.id)),
    )
  })
  return finished.map(() => null)
}

function resultOf(delivery: Claimed, { outcome, decision, at }: Omit<Finished, 'delivery'>): Result {
  const finishes = decision.kind !== 'retry'
  return {
    state: decision.kind === 'delivered' ? 'delivered' : finishes ? 'failed' : 'pending',
    due_at: finishes ? delivery.due_at : decision.dueAt,
    attempted_at: at,
    response_status: outcome.status,
    response_body: outcome.body,
    error: outcome.error,
    finished_at: finishes ? at : null,
  }
}

/** Notes which endpoints fail, and disables those that answered 410 or have failed for days. */
async function judgeEndpoints(platform: Platform, tx: Tx, finished: readonly Finished[]): Promise<void> {
  const idsOf = (some: readonly Finished[]) =>
    [...new Set(some.map(({ delivery }) => delivery.endpoint_id))].sort()
  const succeeded = idsOf(finished.filter(({ decision }) => decision.kind === 'delivered'))
  const gone = idsOf(finished.filter(({ decision }) => decision.kind === 'gone'))
  const failed = idsOf(finished).filter((id) => !succeeded.includes(id))
  const now = platform.clock.now()
  await markSucceeded(tx, succeeded)
  await markFailing(tx, failed, now)
  for (const endpointId of gone) await disable(platform, tx, endpointId, 'gone', 'It answered 410.')
  const failing = await endpointsById(tx, failed)
  for (const { id, failing_since: since } of failing) {
    if (hasFailedForLong(since, now)) await disable(platform, tx, id, 'failing', 'It failed for 5 days.')
  }
}

async function disable(
  platform: Platform,
  tx: Tx,
  endpointId: string,
  reason: DisabledReason,
  note: string,
): Promise<void> {
  await disableEndpoint(platform, tx, { endpointId, reason, actor: SERVICE, note })
}
