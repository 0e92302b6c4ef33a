import { createHash, randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { App } from '../../server/app.ts'
import { type EventRow, listEvents } from '../../server/inbox/events.service.ts'
import { recordOperatorDelivery } from '../../server/inbox/operator-deliveries.service.ts'
import { findSale } from '../../server/sales/sales.service.ts'
import { Failure } from '../failures.ts'
import type { Answer } from './service-caller.ts'
import type { Outcome, Session, SignedEvent } from './session.ts'

export interface Replay extends Outcome {
  fixture: string
  expected: string | null
  /** `null` where no manifest knows what is expected. */
  asExpected: boolean | null
  deliveryId: string
  /** One a delivery. */
  answers: Answer[]
}

/** Records events as sent by an operator, sends them as often and in the order that the options say, and waits until they are settled. */
export async function sendEvents(session: Session, events: readonly SignedEvent[]): Promise<Replay[]> {
  const { app, caller, progress, options } = session
  for (const { delivery, rawBody, fixture } of events) {
    await recordOperatorDelivery(app.platform, {
      scope: delivery.scope,
      delivery_id: delivery.deliveryId,
      body_hash: hashOf(rawBody),
      fixture,
      url: caller.base,
    })
  }
  const answers = await sendAll(session, events)
  const deadline = performance.now() + TIMEOUT_MS
  const replays: Replay[] = []
  for (const event of events) {
    const { fixture, expected } = event
    progress(`waiting for the result of ${fixture}`)
    const own = answers.get(event) ?? []
    const isAnyTaken = own.some(({ status }) => isTaken(status))
    const row = isAnyTaken ? await settledEvent(app, event, deadline) : null
    const saleId = row?.result ? (JSON.parse(row.result) as { sale_id?: string }).sale_id : undefined
    const sale = saleId ? ((await findSale(app.platform.database.reader, 'all', saleId)) ?? null) : null
    const outcome = { event: row, sale }
    replays.push({
      fixture,
      deliveryId: event.delivery.deliveryId,
      answers: own,
      ...outcome,
      ...(options.corrupt === undefined
        ? { expected: expected?.text ?? null, asExpected: expected && (await expected.isMet(outcome)) }
        : { expected: 'refused', asExpected: !isAnyTaken }),
    })
  }
  return replays
}

export function isTaken(status: number): boolean {
  return status >= 200 && status < 300
}

async function sendAll(
  { caller, options, progress }: Session,
  events: readonly SignedEvent[],
): Promise<Map<SignedEvent, Answer[]>> {
  const deliveries = events.flatMap((event) => Array.from({ length: options.times }, () => event))
  if (options.shuffle) shuffle(deliveries)
  const answers = new Map<SignedEvent, Answer[]>()
  for (const [at, event] of deliveries.entries()) {
    progress(`sending ${event.fixture} (${at + 1} of ${deliveries.length})`)
    const answer = await caller.call(event.path, event.headers, event.rawBody)
    answers.set(event, [...(answers.get(event) ?? []), answer])
  }
  return answers
}

function shuffle(items: unknown[]): void {
  for (let at = items.length - 1; at > 0; at -= 1) {
    const other = randomInt(at + 1)
    const kept = items[at]
    items[at] = items[other]
    items[other] = kept
  }
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

const TIMEOUT_MS = 10_000
const POLL_MS = 40

/** The event in the inbox, as soon as it is settled; as it stands when that takes too long. */
export async function settledEvent(
  app: App,
  { delivery, rawBody }: Pick<SignedEvent, 'delivery' | 'rawBody'>,
  deadline: number,
): Promise<EventRow> {
  const bodyHash = hashOf(rawBody)
  for (;;) {
    const rows = await listEvents(app.platform, { delivery, limit: 10 })
    const row = rows.find((one) => one.body_hash === bodyHash)
    // Between its tries an event has a reason already: the next try can be minutes away.
    if (row && (row.state !== 'pending' || row.reason !== null || performance.now() > deadline)) return row
    if (rows.length === 0) {
      throw new Failure(
        'The service took the event, but it is not in this database. Is --database-url the one it uses?',
      )
    }
    await pause(POLL_MS)
  }
}
