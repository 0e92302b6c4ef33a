import type { App } from '../../server/app.ts'
import { isId } from '../../server/platform/ids.ts'
import { didYouMean } from '../../server/platform/nearest-word.ts'
import { isProduction } from '../../server/production-mark.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { type Replay, sendEvents } from './deliver.ts'
import { type Fixtures, type ProcessorFixture, readFixtures } from './fixture-files.ts'
import { type PickedLink, pickLink } from './pick-link.ts'
import { NO_SUBJECT, prepareProcessorEvent, subjectOf } from './processor-events.ts'
import { prepareFile, prepareRecorded } from './recorded-events.ts'
import { refuseWithoutDestination, type Sandbox, sandboxOf } from './sandbox.ts'
import { ServiceCaller } from './service-caller.ts'
import type { ReplayOptions, Session, SignedEvent } from './session.ts'
import { prepareOrders } from './store-events.ts'

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
  await refuseAddress(caller, names, options)
  const session: Session = { app, caller, options, progress }
  const single = await prepareSingle(session, names)
  if (single) return { replays: await sendEvents(session, [single]), skipped: [], link: null }
  return replayFixtures(session, await selectFixtures(names, options))
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

async function refuseProductionDatabase({ platform, database }: App): Promise<void> {
  const isSet = platform.config.NODE_ENV === 'production'
  if (!isSet && !(await isProduction(database.reader))) return
  const why = isSet ? 'NODE_ENV is production' : 'this is a database of production'
  throw forbidden(`Refused: ${why}. Replay on a copy that "affiliate db mark-development" has marked.`)
}

function forbidden(message: string): Failure {
  return new Failure(message, { code: 'forbidden' })
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
      throw forbidden('Recorded events stay on this machine: their bodies hold data of buyers.')
    }
  }
  const environment = await caller.environment()
  if (environment === 'development' || environment === 'test') return
  const what = environment === null ? 'does not say that it is not production' : `is ${environment}`
  throw forbidden(`Refused: the service at ${caller.base} ${what}.`)
}

/** Where the service of these settings listens, as seen from this machine. */
export function listeningAddress({ platform: { config } }: App): string {
  const host = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[config.HOST] ?? config.HOST
  return `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${config.PORT}`
}

/** A file or a recorded event; `null` for fixtures. */
async function prepareSingle(session: Session, names: readonly string[]): Promise<SignedEvent | null> {
  const { body } = session.options
  const [name] = names
  if (body !== undefined) {
    if (name !== undefined) throw wrongUsage('Name a fixture or a file with --body, not both.')
    return prepareFile(session, body)
  }
  if (name === undefined || !names.some(isId)) return null
  if (names.length > 1) throw wrongUsage('Name one recorded event, or fixtures.')
  return prepareRecorded(session, name)
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
  const payouts = processor.some(({ needs }) => needs.endsWith('payout'))
  const picked = await pickLink(app, options, { payable: payouts })
  const link = picked instanceof Failure ? null : picked
  const isOwn = options.url === undefined || caller.isLocal
  const sandbox = options.corrupt === undefined && isOwn ? sandboxOf(session, picked) : null
  const needed = sandbox && processor.some((fixture) => isMade(fixture, options))
  if (needed && payouts && link) await refuseWithoutDestination(app, link.link)
  const orders = await prepareOrders(session, storeSales, picked)
  const [alone] = storeSales.length + processor.length === 1 ? orders.skipped : []
  if (alone) throw new Failure(`${alone.fixture} was not sent: ${alone.reason}.`, { code: 'not_found' })
  const report: ReplayReport = {
    replays: await sendEvents(session, orders.events),
    skipped: orders.skipped,
    link: orders.hasClicks || needed ? link : null,
  }
  try {
    for (const fixture of processor) report.replays.push(await replayProcessor(session, fixture, sandbox))
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
  sandbox: Sandbox | null,
): Promise<Replay> {
  const { options, progress } = session
  progress(`preparing ${fixture.name}`)
  const subject =
    sandbox && isMade(fixture, options)
      ? await sandbox.subjectFor(fixture)
      : await subjectOf(session, fixture)
  // What is corrupted is refused, whatever it is about.
  const about = subject ?? (options.corrupt === undefined ? null : NO_SUBJECT)
  if (about === null) {
    const what = `a ${fixture.needs} that the processor knows`
    throw new Failure(`${fixture.name} is about ${what}, and there is none.`, { code: 'not_found' })
  }
  const [replay] = await sendEvents(session, [await prepareProcessorEvent(session, fixture, about)])
  return replay as Replay
}
