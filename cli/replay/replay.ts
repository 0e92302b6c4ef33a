import { createHash, randomInt, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { App } from '../../server/app.ts'
import { type EventRow, listEvents } from '../../server/inbox/events.service.ts'
import { recordOperatorDelivery } from '../../server/inbox/operator-deliveries.service.ts'
import type { ShownLink } from '../../server/links/links.service.ts'
import { isId } from '../../server/platform/ids.ts'
import { didYouMean } from '../../server/platform/nearest-word.ts'
import { isProduction } from '../../server/production-mark.ts'
import { getSale } from '../../server/sales/sales.service.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { type Fixtures, type ProcessorFixture, readFixtures } from './fixture-files.ts'
import { type PickedLink, pickLink } from './pick-link.ts'
import { NO_SUBJECT, prepareProcessorEvent, type Subject, subjectOf } from './processor-events.ts'
import { prepareFile, prepareRecorded } from './recorded-events.ts'
import { type SandboxControl, sandboxOf } from './sandbox-control.ts'
import { refuseWithoutDestination, SandboxState } from './sandbox-state.ts'
import { type Answer, ServiceCaller } from './service-caller.ts'
import type { Outcome, ReplayOptions, SignedEvent } from './signed-event.ts'
import { prepareOrders, prepareSale } from './store-events.ts'

export interface Replay extends Outcome {
  fixture: string
  expected: string | null
  /** `null` where no manifest knows what is expected. */
  asExpected: boolean | null
  deliveryId: string
  /** One a delivery. */
  answers: Answer[]
}

export interface ReplayReport {
  replays: Replay[]
  /** Fixtures that were not sent, because they need what the database does not have. */
  skipped: { fixture: string; reason: string }[]
  /** Where clicks come from, if there are any. */
  link: PickedLink | null
}

/**
 * Signs events as their sender would, records them as sent by an operator, sends them to the running service, and compares what they lead to
 * with what is expected. Refuses production, by the settings, the database and the service. The secrets come from the database and the keys,
 * the orders' gaps from a click that is made first, the processor's from a cycle or payout that is there or made in the sandbox.
 */
export async function replayEvents(
  app: App,
  names: readonly string[],
  options: ReplayOptions,
  progress: (text: string) => void,
): Promise<ReplayReport> {
  refuseContradictions(names, options)
  await refuseProductionDatabase(app)
  const caller = new ServiceCaller(options.url ?? listeningAddress(app))
  try {
    await refuseAddress(caller, names, options)
    const session: Session = { app, caller, options, progress }
    const single = await prepareSingle(session, names)
    if (single) return { replays: await sendEvents(session, [single]), skipped: [], link: null }
    return await replayFixtures(session, await selectFixtures(names, options))
  } finally {
    await caller.close()
  }
}

interface Session {
  app: App
  caller: ServiceCaller
  options: ReplayOptions
  progress: (text: string) => void
}

function refuseContradictions(names: readonly string[], options: ReplayOptions): void {
  const { all, body, eventId, cycle, payout } = options
  if (all && (names[0] ?? body ?? eventId ?? cycle ?? payout) !== undefined) {
    throw wrongUsage(
      '--all sends every fixture: leave out the name, --body, --event-id, --cycle and --payout.',
    )
  }
  if (all || names.length > 0 || body !== undefined) return
  throw wrongUsage('Name a fixture, a recorded event, or a file with --body, or pass --all.')
}

async function sendEvents(session: Session, events: readonly SignedEvent[]): Promise<Replay[]> {
  const { app, caller, options, progress } = session
  for (const event of events) await recordDelivery(app, caller, event)
  const answers = await sendAll(caller, events, options, progress)
  const deadline = performance.now() + TIMEOUT_MS
  const replays: Replay[] = []
  for (const event of events) {
    progress(`waiting for what comes of ${event.fixture}`)
    replays.push(await replayOf(session, event, answers.get(event) ?? [], deadline))
  }
  return replays
}

async function replayOf(
  { app, options }: Session,
  event: SignedEvent,
  answers: Answer[],
  deadline: number,
): Promise<Replay> {
  const outcome = await outcomeOf(app, event, answers, deadline)
  const { fixture, delivery } = event
  const replay = { fixture, deliveryId: delivery.deliveryId, answers, ...outcome }
  if (options.corrupt !== undefined) {
    return { ...replay, expected: 'refused', asExpected: !answers.some(({ status }) => isTaken(status)) }
  }
  const asExpected = event.expected && (await event.expected.isMet(outcome))
  return { ...replay, expected: event.expected?.text ?? null, asExpected }
}

export function isTaken(status: number): boolean {
  return status >= 200 && status < 300
}

async function refuseProductionDatabase({ platform, database }: App): Promise<void> {
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
  names: readonly string[],
  { url, allowRemote }: ReplayOptions,
): Promise<void> {
  // Without --url it is the address that HOST and PORT name: this machine.
  if (url !== undefined && !caller.isLocal) {
    if (!allowRemote) {
      throw wrongUsage(`${url} is not on this machine. Pass --allow-remote to send events there.`)
    }
    if (names.some(isId)) {
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
  await recordOperatorDelivery(app.platform, {
    scope: event.delivery.scope,
    delivery_id: event.delivery.deliveryId,
    body_hash: hashOf(event.rawBody),
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

/** A file or a recorded event; `null` for fixtures. */
async function prepareSingle(
  { app, caller, options }: Session,
  names: readonly string[],
): Promise<SignedEvent | null> {
  const deliveryId = options.eventId ?? randomUUID()
  const [name] = names
  if (options.body !== undefined) {
    if (name !== undefined) throw wrongUsage('Name a fixture or a file with --body, not both.')
    return prepareFile(app, caller, options.body, deliveryId, options)
  }
  if (name === undefined || !names.some(isId)) return null
  if (names.length > 1) throw wrongUsage('Name one recorded event, or fixtures.')
  return prepareRecorded(app, caller, name, deliveryId, options)
}

async function selectFixtures(names: readonly string[], { all, eventId }: ReplayOptions): Promise<Fixtures> {
  const fixtures = await readFixtures()
  if (all) return fixtures
  const known = new Set([...fixtures.storeSales, ...fixtures.processor].map((fixture) => fixture.name))
  const unknown = names.find((name) => name !== 'all' && !known.has(name))
  if (unknown !== undefined) {
    throw wrongUsage(
      `There is no fixture ${unknown}.${didYouMean(unknown, [...known])} See "affiliate webhooks fixtures".`,
    )
  }
  const selected = {
    storeSales: fixtures.storeSales.filter(({ name }) => names.includes('all') || names.includes(name)),
    processor: fixtures.processor.filter(({ name }) => names.includes(name)),
  }
  if (selected.storeSales.length + selected.processor.length > 1 && eventId !== undefined) {
    throw wrongUsage('--event-id is for one fixture: a delivery id stands for one body.')
  }
  return selected
}

async function replayFixtures(session: Session, { storeSales, processor }: Fixtures): Promise<ReplayReport> {
  const { app, caller, options } = session
  const isOwn = options.url === undefined || caller.isLocal
  const sandbox = options.corrupt === undefined && isOwn ? sandboxOf(app) : null
  const payouts = processor.some(({ needs }) => needs.endsWith('payout'))
  const link = await pickLink(app, options, { payable: payouts })
  const needed = sandbox && processor.some((fixture) => isMade(fixture, options))
  if (needed && payouts) await refuseWithoutDestination(app, link?.link ?? null)
  const wanted = storeSales.map((fixture) => ({ fixture, deliveryId: options.eventId ?? randomUUID() }))
  const orders = await prepareOrders(app, caller, wanted, link, options)
  const [alone] = storeSales.length + processor.length === 1 ? orders.skipped : []
  if (alone) throw new Failure(`${alone.fixture} was not sent: ${alone.reason}.`, { code: 'not_found' })
  const report: ReplayReport = {
    replays: await sendEvents(session, orders.events),
    skipped: orders.skipped,
    link: orders.hasClicks || needed ? link : null,
  }
  try {
    for (const fixture of processor)
      report.replays.push(await replayProcessor(session, fixture, sandbox, link))
  } finally {
    if (needed) await sandbox.release()
  }
  return report
}

/** Whether the sandbox is to have what the fixture is about. */
function isMade({ needs }: ProcessorFixture, { cycle, payout }: ReplayOptions): boolean {
  return needs !== 'nothing' && (needs.endsWith('cycle') ? cycle : payout) === undefined
}

async function replayProcessor(
  session: Session,
  fixture: ProcessorFixture,
  sandbox: SandboxControl | null,
  picked: PickedLink | null,
): Promise<Replay> {
  const { app, options, progress } = session
  progress(`preparing ${fixture.name}`)
  const subject =
    sandbox && isMade(fixture, options)
      ? await madeSubject(session, fixture, sandbox, picked)
      : await subjectOf(app, fixture, options)
  // What is corrupted is refused, whatever it is about.
  const about = subject ?? (options.corrupt === undefined ? null : NO_SUBJECT)
  if (about === null) {
    throw new Failure(
      `${fixture.name} is about a ${fixture.needs} that the processor knows, and there is none.`,
      { code: 'not_found' },
    )
  }
  const deliveryId = options.eventId ?? randomUUID()
  const event = await prepareProcessorEvent(app, fixture, about, deliveryId, options)
  const [replay] = await sendEvents(session, [event])
  return replay as Replay
}

async function madeSubject(
  session: Session,
  fixture: ProcessorFixture,
  sandbox: SandboxControl,
  picked: PickedLink | null,
): Promise<Subject> {
  const { app, caller, options } = session
  const once: Session = { ...session, options: { as: 'store', times: 1 } }
  const send = async (event: SignedEvent): Promise<Outcome> => (await sendEvents(once, [event]))[0] as Outcome
  const sell = async (commission: number, link: ShownLink) => {
    const { event, sale } = await send(await prepareSale(app, caller, link, commission, options))
    if (sale?.acceptance_status === 'accepted') return sale
    const why = sale?.rejection_reason ?? event?.reason ?? 'the service did not take it'
    throw new Failure(`The sale that ${fixture.name} needs was not accepted: ${why}.`)
  }
  const state = new SandboxState({
    app,
    sandbox,
    link: picked?.link ?? null,
    store: options.store,
    sell,
    send,
  })
  return state.subjectFor(fixture)
}

async function outcomeOf(
  app: App,
  event: SignedEvent,
  answers: Answer[],
  deadline: number,
): Promise<Outcome> {
  const taken = answers.some(({ status }) => isTaken(status))
  const row = taken ? await settledEvent(app, event.delivery, hashOf(event.rawBody), deadline) : null
  const saleId = row?.result ? (JSON.parse(row.result) as { sale_id?: string }).sale_id : undefined
  const sale = saleId ? ((await getSale(app.platform, 'all', saleId)) ?? null) : null
  return { event: row, sale }
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

const TIMEOUT_MS = 10_000
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
