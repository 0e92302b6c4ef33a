import type { EventRow } from '../../server/inbox/events.service.ts'
import { eventOf } from '../../server/processor/manual/confirmation.rule.ts'
import type { TransferRow } from '../../server/processor/manual/transfers.service.ts'
import type { AppContext } from '../context.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { isTaken, settledEvent } from '../replay/deliver.ts'
import { listeningAddress } from '../replay/replay.ts'
import { ServiceCaller } from '../replay/service-caller.ts'

/** The result of the event about a transfer. */
export interface Delivered {
  transfer: TransferRow
  /** `null` where the service did not take it. */
  event: EventRow | null
  /** Why it did not, or why the event has not settled the cycle or payout; `null` where it has. */
  problem: string | null
}

/** Events that are under way at the same time. */
const AT_ONCE = 20
const SETTLED_WITHIN_MS = 10_000

/** The running service: `url`, or the address of HOST and PORT. Refuses one that cannot be reached, before anything is recorded. */
export async function reachService({ app }: AppContext, url: string | undefined): Promise<ServiceCaller> {
  const caller = new ServiceCaller(url ?? listeningAddress(app))
  if (!caller.isLocal && !caller.base.startsWith('https:')) {
    throw wrongUsage(`${caller.base} is neither https nor on this machine.`)
  }
  await caller.environment()
  return caller
}

/**
 * Sends the event about each settled transfer to the service, signed as the processor signs, and waits until the service has applied it. The
 * same transfer gives the same event under the same id, so a second one changes nothing.
 */
export async function deliverEvents(
  { app, out }: AppContext,
  caller: ServiceCaller,
  transfers: readonly TransferRow[],
): Promise<Delivered[]> {
  const { scheme, secrets } = app.processorSignature
  const [secret] = secrets
  if (secret === undefined) throw new Failure('PROCESSOR_WEBHOOK_SECRETS is not set.')
  // Without a worker no event is settled: only the first ones are waited for.
  let deadline = performance.now() + SETTLED_WITHIN_MS
  const deliver = async (transfer: TransferRow): Promise<Delivered> => {
    const rawBody = Buffer.from(eventOf(transfer))
    const deliveryId = `manual-${transfer.id}`
    const headers = scheme.sign({ deliveryId, rawBody, secret, now: app.platform.clock.now() })
    const { status } = await caller.call('/webhooks/processor', headers, rawBody)
    if (!isTaken(status)) return { transfer, event: null, problem: refusalText(status) }
    const delivery = { scope: 'processor', deliveryId }
    const event = await settledEvent(app, { delivery, rawBody }, deadline)
    return { transfer, event, problem: problemOf(event) }
  }
  const delivered: Delivered[] = []
  for (let at = 0; at < transfers.length; at += AT_ONCE) {
    const batch = await Promise.all(transfers.slice(at, at + AT_ONCE).map(deliver))
    delivered.push(...batch)
    if (batch.some(({ problem }) => problem === null)) deadline = performance.now() + SETTLED_WITHIN_MS
    if (transfers.length > 1) out.progress(`${delivered.length} of ${transfers.length} events sent`)
  }
  return delivered
}

function refusalText(status: number): string {
  const hint = status === 401 ? ': its PROCESSOR_WEBHOOK_SECRETS are others' : ''
  return `the service answered ${status}${hint}; run the command again`
}

function problemOf({ state, reason }: EventRow): string | null {
  if (state === 'done' || state === 'ignored') return null
  if (state === 'set_aside')
    return `the event was set aside: ${reason?.replaceAll('_', ' ')}; see "affiliate flagged list"`
  return `not applied yet${reason === null ? ', is a worker running?' : `: ${reason}`}`
}
