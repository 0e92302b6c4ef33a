import { randomInt, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { App } from '../../server/app.ts'
import { type EventRow, listEvents } from '../../server/inbox/events.service.ts'
import { isId } from '../../server/platform/ids.ts'
import { getSale, type SaleWithSlug } from '../../server/sales/sales.service.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { didYouMean } from '../nearest-word.ts'
import { expectedEvent, expectedSale, readFixtures } from './fixture-files.ts'
import { prepareProcessorEvent } from './processor-events.ts'
import { type Answer, ServiceCaller } from './service-caller.ts'
import type { ReplayOptions, SignedEvent } from './signed-event.ts'
import { prepareOrders } from './store-events.ts'

export interface Replay {
  fixture: string
  expected: string | null
  deliveryId: string
  /** One a delivery. */
  answers: Answer[]
  /** `null`: refused, or not in this database. */
  event: EventRow | null
  sale: SaleWithSlug | null
}

/**
 * Signs events as their sender would, records them as sent by an operator, and sends them to the running service, one after the other. Refuses
 * production, by the settings, the database and the service. The secrets come from
 * the database and the keys, the fixtures' gaps from a click that is made first, or from a cycle or payout that is there.
 */
export async function replayEvents(
  app: App,
  name: string | undefined,
  options: ReplayOptions,
  progress: (text: string) => void,
): Promise<Replay[]> {
  await refuseProductionDatabase(app)
  const caller = new ServiceCaller(options.url ?? listeningAddress(app))
  try {
    await refuseAddress(caller, name, options)
    const events = await prepare(app, caller, name, options)
    for (const event of events) await recordDelivery(app, caller, event)
    const answers = await sendAll(caller, events, options, progress)
    const deadline = performance.now() + PATIENCE_MS
    const replays: Replay[] = []
    for (const event of events) {
      progress(`waiting for what comes of ${event.fixture}`)
      const replay = await outcomeOf(app, event, answers.get(event) ?? [], deadline)
      replays.push(options.corrupt === undefined ? replay : { ...replay, expected: 'refused' })
    }
    return replays
  } finally {
    await caller.close()
  }
}

async function refuseProductionDatabase({ platform, database }: App): Promise<void> {
  const { isProduction } = await import('../../server/production-mark.ts')
  const why =
    platform.config.NODE_ENV === 'production'
      ? 'NODE_ENV is production'
      : (await isProduction(database.reader))
        ? 'this is a database of production'
        : null
  if (why === null) return
  throw new Failure(`Refused: ${why}. Replay on a copy that "affiliate db mark-development" has marked.`, {
    code: 'forbidden',
  })
}

async function refuseAddress(
  caller: ServiceCaller,
  name: string | undefined,
  { url, allowRemote }: ReplayOptions,
): Promise<void> {
  // Without --url it is the address that HOST and PORT name: this machine.
  if (url !== undefined && !caller.isLocal) {
    if (!allowRemote) {
      throw wrongUsage(`${url} is not on this machine. Pass --allow-remote to send events there.`)
    }
    if (name !== undefined && isId(name)) {
      throw new Failure('Recorded events stay on this machine: their bodies hold data of buyers.', {
        code: 'forbidden',
      })
    }
  }
  const environment = await caller.environment()
  if (environment === 'development' || environment === 'test') return
  throw new Failure(
    environment === null
      ? `Refused: the service at ${caller.base} does not say that it is not production.`
      : `Refused: the service at ${caller.base} is ${environment}.`,
    { code: 'forbidden' },
  )
}

async function recordDelivery(app: App, caller: ServiceCaller, event: SignedEvent): Promise<void> {
  const { recordOperatorDelivery } = await import('../../server/inbox/operator-deliveries.service.ts')
  await recordOperatorDelivery(app.platform, {
    scope: event.delivery.scope,
    delivery_id: event.delivery.deliveryId,
    body_hash: await hashOf(event.rawBody),
    fixture: event.fixture,
    url: caller.base,
  })
}

async function sendAll(
  caller: ServiceCaller,
  events: readonly SignedEvent[],
  options: ReplayOptions,
  progress: (text: string) => void,
): Promise<Map<SignedEvent, Answer[]>> {
  const deliveries = events.flatMap((event) => Array.from({ length: options.times }, () => event))
  if (options.shuffle) shuffle(deliveries)
  const answers = new Map<SignedEvent, Answer[]>()
  for (const [at, event] of deliveries.entries()) {
    progress(`sending ${event.fixture} (${at + 1} of ${deliveries.length})`)
    const answer = await caller.post(event.path, event.headers, event.rawBody)
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

/** Where the service of these settings listens, as seen from this machine. */
function listeningAddress({ platform: { config } }: App): string {
  const host = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[config.HOST] ?? config.HOST
  return `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${config.PORT}`
}

async function prepare(
  app: App,
  caller: ServiceCaller,
  name: string | undefined,
  options: ReplayOptions,
): Promise<SignedEvent[]> {
  const deliveryId = options.eventId ?? randomUUID()
  if (options.body !== undefined) {
    if (name !== undefined) throw wrongUsage('Name a fixture or a file with --body, not both.')
    const { prepareFile } = await import('./recorded-events.ts')
    return [await prepareFile(app, caller, options.body, deliveryId, options)]
  }
  if (name === undefined) throw wrongUsage('Name a fixture, a recorded event, or a file with --body.')
  if (isId(name)) {
    const { prepareRecorded } = await import('./recorded-events.ts')
    return [await prepareRecorded(app, caller, name, deliveryId, options)]
  }
  return prepareFixtures(app, caller, name, deliveryId, options)
}

async function prepareFixtures(
  app: App,
  caller: ServiceCaller,
  name: string,
  deliveryId: string,
  options: ReplayOptions,
): Promise<SignedEvent[]> {
  const { storeSales, processor } = await readFixtures()
  const processorFixture = processor.find((fixture) => fixture.name === name)
  if (processorFixture) {
    const expected = expectedEvent(processorFixture)
    return [await prepareProcessorEvent(app, processorFixture, expected, deliveryId, options)]
  }
  const orders = storeSales.filter((fixture) => name === 'all' || fixture.name === name)
  if (orders.length === 0) {
    const names = [...storeSales, ...processor].map((fixture) => fixture.name)
    throw wrongUsage(
      `There is no fixture ${name}.${didYouMean(name, names)} See "affiliate webhooks fixtures".`,
    )
  }
  if (orders.length > 1 && options.eventId !== undefined) {
    throw wrongUsage('--event-id is for one fixture: a delivery id stands for one body.')
  }
  const wanted = orders.map((fixture) => ({
    fixture,
    expected: expectedSale(fixture),
    deliveryId: orders.length === 1 ? deliveryId : randomUUID(),
  }))
  return prepareOrders(app, caller, wanted, options)
}

async function outcomeOf(app: App, event: SignedEvent, answers: Answer[], deadline: number): Promise<Replay> {
  const { fixture, expected, delivery } = event
  const taken = answers.some(({ status }) => status >= 200 && status < 300)
  const row = taken ? await settledEvent(app, delivery, await hashOf(event.rawBody), deadline) : null
  const saleId = row?.result ? (JSON.parse(row.result) as { sale_id?: string }).sale_id : undefined
  const sale = saleId ? ((await getSale(app.platform, 'all', saleId)) ?? null) : null
  return { fixture, expected, deliveryId: delivery.deliveryId, answers, event: row, sale }
}

async function hashOf(bytes: Buffer): Promise<string> {
  const { createHash } = await import('node:crypto')
  return createHash('sha256').update(bytes).digest('hex')
}

const PATIENCE_MS = 10_000
const POLL_MS = 40

/** The event in the inbox, as soon as it is settled; as it stands when that takes too long. */
async function settledEvent(
  app: App,
  delivery: SignedEvent['delivery'],
  bodyHash: string,
  deadline: number,
): Promise<EventRow> {
  for (;;) {
    const rows = await listEvents(app.platform, { delivery, limit: 10 })
    const row = rows.find((one) => one.body_hash === bodyHash)
    if (row && row.state !== 'pending') return row
    // Between its tries an event has a reason already: the next try can be minutes away.
    if (row && (row.reason !== null || performance.now() > deadline)) return row
    if (!row && rows.length === 0) {
      throw new Failure(
        'The service took the event, but it is not in this database. Is --database-url the one it uses?',
      )
    }
    await pause(POLL_MS)
  }
}
