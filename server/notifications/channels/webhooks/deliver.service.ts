import { randomUUID } from 'node:crypto'
import { type ForgedRow, flagForgedRows } from '../../../flags/forged-rows.service.ts'
import { isoTime } from '../../../platform/clock.ts'
import type { ColumnTypes } from '../../../platform/database/bulk-values.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { GroupCommit } from '../../../platform/database/group-commit.ts'
import { rowProblem } from '../../../platform/database/protected-rows.ts'
import type { Platform } from '../../../platform/platform.ts'
import { eventsOf, type OutboxEventRow } from '../../outbox.service.ts'
import { DELIVERY_SIGNAL } from './deliveries.service.ts'
import { type PlaceOwner, Places } from './delivery-places.rule.ts'
import { type AttemptDecision, decideAttempt, hasFailedForLong } from './delivery-retry.rule.ts'
import { validSecrets } from './endpoint-secrets.service.ts'
import { DISABLED, disableEndpoint, SERVICE } from './endpoints.service.ts'
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
  secretsOfEndpoints,
  type WebhookSecretRow,
} from './webhooks.store.ts'
import { withAttempt } from './webhooks-wire.ts'

const LEASE_MS = 60_000
/**
 * No attempt begins later than this after its claim: it and the write of its outcome must end within the lease. Also how long deliveries
 * of an endpoint can go on after it is disabled or its account is suspended.
 */
const BEGIN_WITHIN_MS = 5000
/** Attempts at one endpoint at the same time. */
const MOST_AT_ONCE = 20
/** A claim takes many, because a transaction for each attempt would take longer than the attempts. */
const MOST_CLAIMED = 200
const MOST_WRITTEN = 200
/** How long `stop` waits for attempts under way, ms. */
const STOP_AFTER_MS = 5000
const WRITE_TIMEOUT_MS = 30_000

type Claimed = DeliveryRow & { token: string }

interface Attempt {
  delivery: Claimed
  claimedAt: number
  endpoint: EndpointRow | undefined
  event: OutboxEventRow | undefined
  /** Of the delivery, its event and its endpoint, the first that is not as the service wrote it. */
  forged: Forged | null
  secrets: readonly WebhookSecretRow[]
}

interface Forged extends ForgedRow {
  table: 'webhook_deliveries' | 'outbox_events' | 'webhook_endpoints'
}

interface Finished extends Attempt {
  outcome: WebhookOutcome
  decision: AttemptDecision
  at: number
  /** How long the attempt took. */
  durationMs: number
}

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

/** The deliveries of one endpoint that this process holds. */
interface Lane extends PlaceOwner {
  waiting: Attempt[]
  /** Attempts under way. */
  running: number
}

/** The deliveries that this process is making. */
export class WebhookDeliverer {
  readonly #platform: Platform
  readonly #sender: WebhookSender
  readonly #results: GroupCommit<Finished, null>
  readonly #lanes = new Map<string, Lane>()
  /** What `idle` waits for. */
  readonly #work = new Set<Promise<void>>()
  readonly #places = new Places()
  #stopped = false

  constructor(
    platform: Platform,
    sender = createWebhookSender({ allowLoopback: platform.config.NODE_ENV !== 'production' }),
  ) {
    this.#platform = platform
    this.#sender = sender
    this.#results = new GroupCommit({
      write: (finished) => settle(platform, finished),
      maxBatch: MOST_WRITTEN,
      // All are held, which is what bounds them.
      maxWaiting: Number.POSITIVE_INFINITY,
      timeoutMs: WRITE_TIMEOUT_MS,
    })
  }

  /** Claims due deliveries, as many as their endpoints have places for, and begins to send them. Returns how many. */
  async start(): Promise<number> {
    if (this.#stopped) return 0
    for (const lane of this.#lanes.values()) this.#advance(lane)
    const { database, clock } = this.#platform
    const now = clock.now()
    const token = randomUUID()
    const claimed = await DELIVERY_QUEUE.claim(database, {
      now,
      limit: MOST_CLAIMED,
      lease: { token, until: now + LEASE_MS },
      only: deliverable(database.reader, this.#full()),
      choose: (tx, due) => this.#choose(tx, due),
    })
    const deliveries = claimed.map((row) => ({ ...row, token, attempts: row.attempts + 1 }))
    const attempts = await loadAttempts(this.#platform, deliveries, now).catch((error: unknown) => {
      DELIVERY_QUEUE.abandon(database, token)
      throw error
    })
    for (const attempt of attempts) this.#add(attempt)
    for (const lane of this.#lanes.values()) this.#advance(lane)
    return claimed.length
  }

  /** When a delivery is due that this process has a place for, epoch ms; `null` without one. */
  async nextDueAt(): Promise<number | null> {
    const { reader } = this.#platform.database
    return DELIVERY_QUEUE.nextDueAt(reader, deliverable(reader, this.#full()))
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  /** Waits some seconds for attempts under way, then ends them: their deliveries are due again, as are waiting ones. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const lane of this.#lanes.values()) this.#advance(lane)
    const timer = setTimeout(() => void this.#sender.close(), STOP_AFTER_MS)
    await this.idle()
    clearTimeout(timer)
    await this.#sender.close()
  }

  /** The endpoints that get no delivery now, by id. */
  #full(): string[] {
    return [...this.#lanes.values()]
      .filter((lane) => this.#places.isFull(lane))
      .map(({ endpointId }) => endpointId)
  }

  async #choose(tx: Tx, due: readonly DeliveryRow[]): Promise<DeliveryRow[]> {
    const rows = await endpointsById(tx, [...new Set(due.map(({ endpoint_id }) => endpoint_id))])
    const endpoints = new Map(rows.map((row) => [row.id, row]))
    // Another process may have noted it.
    for (const lane of this.#lanes.values())
      lane.failing ||= ownerOf(lane.endpointId, endpoints.get(lane.endpointId)).failing
    const places = new Places(this.#places)
    return due.filter(({ endpoint_id: id }) => {
      const owner = ownerOf(id, endpoints.get(id))
      if (!places.hasRoom(owner)) return false
      places.take(owner, 1)
      return true
    })
  }

  #add(attempt: Attempt): void {
    const { endpoint_id: id } = attempt.delivery
    const owner = ownerOf(id, attempt.endpoint)
    const lane = this.#lanes.get(id) ?? { ...owner, waiting: [], running: 0 }
    this.#lanes.set(id, lane)
    lane.failing = owner.failing
    lane.waiting.push(attempt)
    this.#places.take(lane, 1)
  }

  /** Begins waiting attempts for which there is room, and gives back those that must not begin any longer. */
  #advance(lane: Lane): void {
    const latest = this.#platform.clock.now() - BEGIN_WITHIN_MS
    if (this.#stopped || (lane.waiting[0]?.claimedAt ?? latest) < latest) {
      this.#track(lane, lane.waiting.splice(0), (attempts) => this.#release(attempts))
      return
    }
    while (lane.running < MOST_AT_ONCE) {
      const attempt = lane.waiting.shift()
      if (!attempt) return
      this.#track(lane, [attempt], () => this.#deliver(lane, attempt))
    }
  }

  /** Runs `work` on held deliveries, which are no longer held when it ends. */
  #track(lane: Lane, attempts: Attempt[], work: (attempts: Attempt[]) => Promise<unknown>): void {
    const [first] = attempts
    if (!first) return
    const running = work(attempts)
      .catch((error: unknown) => {
        const { id } = first.delivery
        this.#platform.log.error({ err: error, delivery: id }, 'the outcome of a webhook delivery is lost')
      })
      .then(() => {
        this.#work.delete(running)
        this.#places.take(lane, -attempts.length)
        if (this.#places.of(lane.endpointId) === 0) this.#lanes.delete(lane.endpointId)
        if (!this.#places.isFull(lane)) this.#platform.topics.send(DELIVERY_SIGNAL)
      })
    this.#work.add(running)
  }

  async #deliver(lane: Lane, attempt: Attempt): Promise<void> {
    const refusal = refusalOf(attempt)
    lane.running += 1
    const begin = performance.now()
    const outcome = refusal === null ? await this.#send(attempt) : notSent(refusal)
    const durationMs = Math.round(performance.now() - begin)
    lane.running -= 1
    if (this.#stopped && outcome.status === null) return this.#release([attempt])
    const at = this.#platform.clock.now()
    const { status, retryAfter } = outcome
    const facts = { attempt: attempt.delivery.attempts, status, retryAfter, now: at, jitter: Math.random() }
    const decision: AttemptDecision = refusal === null ? decideAttempt(facts) : { kind: 'failed' }
    if (decision.kind === 'delivered' || attempt.forged) this.#advance(lane)
    else {
      lane.failing = true
      this.#track(lane, lane.waiting.splice(0), (attempts) => this.#release(attempts))
    }
    await this.#results.add({ ...attempt, outcome, decision, at, durationMs })
  }

  async #send({ endpoint, event, secrets }: Attempt): Promise<WebhookOutcome> {
    const keys = endpoint ? validSecrets(this.#platform, endpoint, secrets) : []
    if (!endpoint || !event || keys.length === 0) {
      return notSent('The secret of the endpoint cannot be opened. Rotate it.')
    }
    const now = this.#platform.clock.now()
    return this.#sender.send({
      url: endpoint.url,
      eventId: event.id,
      body: bodyOf(event),
      secrets: keys,
      now,
    })
  }

  /** Makes deliveries due again without counting an attempt. */
  async #release(attempts: readonly Attempt[]): Promise<void> {
    const byToken = Map.groupBy(attempts, ({ delivery }) => delivery.token)
    await this.#platform.database.transaction(async (tx) => {
      for (const [token, held] of byToken) {
        const ids = held.map(({ delivery }) => delivery.id)
        await DELIVERY_QUEUE.release(tx, token, ids)
      }
    })
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

function notSent(error: string): WebhookOutcome {
  return { status: null, retryAfter: null, body: null, error }
}

/**
 * Why a delivery fails without an attempt: it is forged, or was queued while its endpoint was being disabled or removed; `null` for others.
 */
function refusalOf({ forged, endpoint }: Attempt): string | null {
  if (forged) return forged.problem
  return !endpoint || endpoint.disabled_at !== null || endpoint.removed_at !== null ? DISABLED : null
}

function ownerOf(endpointId: string, endpoint: EndpointRow | undefined): PlaceOwner {
  const { account_id: accountId = endpointId, failing_since = null } = endpoint ?? {}
  return { endpointId, accountId, failing: failing_since !== null }
}

/** The body that is signed and sent. */
function bodyOf({ type, created_at, data }: OutboxEventRow): string {
  return `{"type":${JSON.stringify(type)},"timestamp":"${isoTime(created_at)}","data":${data}}`
}

function forgedOf(
  { keys }: Platform,
  delivery: DeliveryRow,
  event: OutboxEventRow | undefined,
  endpoint: EndpointRow | undefined,
): Forged | null {
  const found: [Forged['table'], { id: string } | undefined, string | null][] = [
    ['webhook_deliveries', delivery, rowProblem(keys, 'webhook_deliveries', delivery)],
    ['outbox_events', event, event ? rowProblem(keys, 'outbox_events', event) : null],
    ['webhook_endpoints', endpoint, endpoint ? rowProblem(keys, 'webhook_endpoints', endpoint) : null],
  ]
  for (const [table, row, problem] of found) if (row && problem) return { table, id: row.id, problem }
  return null
}

async function loadAttempts(
  platform: Platform,
  deliveries: readonly Claimed[],
  claimedAt: number,
): Promise<Attempt[]> {
  if (deliveries.length === 0) return []
  const { reader } = platform.database
  const ids = [...new Set(deliveries.map(({ endpoint_id }) => endpoint_id))]
  const endpoints = new Map((await endpointsById(reader, ids)).map((endpoint) => [endpoint.id, endpoint]))
  const secrets = await secretsOfEndpoints(reader, ids)
  const events = await eventsOf(
    reader,
    deliveries.map(({ event_id }) => event_id),
  )
  return deliveries.map((delivery) => ({
    delivery,
    claimedAt,
    endpoint: endpoints.get(delivery.endpoint_id),
    event: events.get(delivery.event_id),
    forged: forgedOf(platform, delivery, events.get(delivery.event_id), endpoints.get(delivery.endpoint_id)),
    secrets: secrets.get(delivery.endpoint_id) ?? [],
  }))
}

/** Writes the outcomes of attempts. A delivery that was disabled or retried meanwhile stays as it is. */
async function settle(platform: Platform, finished: readonly Finished[]): Promise<null[]> {
  await platform.database.transaction(async (tx) => {
    const results = finished.map((one) => ({
      row_id: one.delivery.id,
      token: one.delivery.token,
      ...resultOf(one),
    }))
    const statement = DELIVERY_QUEUE.completeManyStatement<Result>(tx, RESULT_COLUMNS, results)
    const ids = new Set((await statement.execute(tx)).rows.map(({ id }) => id))
    const held = finished.filter(({ delivery }) => ids.has(delivery.id))
    const forged = held.flatMap((one) => one.forged ?? [])
    for (const [table, rows] of Map.groupBy(forged, (row) => row.table)) {
      await flagForgedRows(platform, tx, table, [...new Map(rows.map((row) => [row.id, row])).values()])
    }
    await judgeEndpoints(
      platform,
      tx,
      held.filter((one) => one.forged === null),
    )
  })
  return finished.map(() => null)
}

function resultOf({ delivery, forged, outcome, decision, at, durationMs }: Finished): Result {
  const finishes = decision.kind !== 'retry'
  if (forged) return { ...delivery, state: 'failed', error: outcome.error, finished_at: at }
  return {
    state: decision.kind === 'delivered' ? 'delivered' : finishes ? 'failed' : 'pending',
    due_at: finishes ? delivery.due_at : decision.dueAt,
    attempted_at: at,
    response_status: outcome.status,
    response_body: outcome.body,
    error: outcome.error,
    attempt_log: withAttempt(delivery, { at, status: outcome.status, error: outcome.error, durationMs }),
    finished_at: finishes ? at : null,
  }
}

/**
 * Notes which endpoints fail, and disables those that answered 410 or have failed for days. What an address answered that was replaced
 * meanwhile says nothing about the endpoint. An endpoint that was changed outside of the service meanwhile is left alone.
 */
async function judgeEndpoints(platform: Platform, tx: Tx, finished: readonly Finished[]): Promise<void> {
  const idsOf = (some: readonly Finished[]) =>
    [...new Set(some.map(({ delivery }) => delivery.endpoint_id))].sort()
  const rows = await endpointsById(tx, idsOf(finished))
  const authentic = rows.filter((row) => rowProblem(platform.keys, 'webhook_endpoints', row) === null)
  const endpoints = new Map(authentic.map((row) => [row.id, row]))
  const judged = finished.filter(
    ({ delivery, endpoint }) => endpoints.get(delivery.endpoint_id)?.url === endpoint?.url,
  )
  const succeeded = idsOf(judged.filter(({ decision }) => decision.kind === 'delivered'))
  const gone = idsOf(judged.filter(({ decision }) => decision.kind === 'gone'))
  const failed = idsOf(judged).filter((id) => !succeeded.includes(id))
  const now = platform.clock.now()
  await markSucceeded(tx, succeeded)
  await markFailing(tx, failed, now)
  const disable = (endpointId: string, reason: DisabledReason, note: string) =>
    disableEndpoint(platform, tx, { endpointId, reason, actor: SERVICE, note })
  for (const id of gone) await disable(id, 'gone', 'It answered 410.')
  for (const id of failed) {
    const since = endpoints.get(id)?.failing_since ?? null
    if (hasFailedForLong(since, now)) await disable(id, 'failing', 'It failed for 5 days.')
  }
}
