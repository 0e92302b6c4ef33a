import { setTimeout as pause } from 'node:timers/promises'
import { request } from 'undici'
import type { App } from '../../server/app.ts'
import { type CycleRow, getCycle, listCycles } from '../../server/billing/billing.service.ts'
import { closeDueCycles } from '../../server/billing/close-cycle.service.ts'
import { OPERATOR } from '../../server/flags/audit.service.ts'
import type { ShownLink } from '../../server/links/links.service.ts'
import { runPayouts } from '../../server/payouts/payout-run.service.ts'
import { getPayout, type PayoutRow } from '../../server/payouts/payouts.service.ts'
import type { SandboxSwitches } from '../../server/processor/sandbox/sandbox-state.ts'
import { destinationsInForce } from '../../server/users/sealed-accounts.service.ts'
import { Failure } from '../failures.ts'
import { sendEvents } from './deliver.ts'
import type { ProcessorFixture } from './fixture-files.ts'
import type { PickedLink } from './pick-link.ts'
import {
  cycleSubject,
  newestCycle,
  newestPayout,
  payoutSubject,
  type Subject,
  signAsProcessor,
} from './processor-events.ts'
import type { Session } from './session.ts'
import { prepareSale } from './store-events.ts'

const TIMEOUT_MS = 15_000
const POLL_MS = 40
const ANSWER_TIMEOUT_MS = 10_000
/** The sandbox sends its own events again after this time, even if the command is killed. */
const HOLD_MS = 60_000

/** What the sandbox tells of its events. */
interface SandboxEvent {
  id: string
  object_id: string
  body: { type: string; data: Record<string, unknown> }
}

/** `null` with another processor, or where no sandbox runs. */
export function sandboxOf(session: Session, picked: PickedLink | Failure): Sandbox | null {
  const { sandbox, platform } = session.app
  const { PROCESSOR, PROCESSOR_URL, PROCESSOR_API_KEY } = platform.config
  const url = PROCESSOR_URL ?? sandbox?.url
  if (PROCESSOR !== 'sandbox' || !sandbox || !url) return null
  return new Sandbox(session, picked, { url, apiKey: PROCESSOR_API_KEY ?? sandbox.api_key })
}

/**
 * The sandbox processor of the running service, as its settings and `sandbox.json` name it. Makes the cycle or payout that a processor
 * fixture needs, the way it comes about: a signed order, a close as the schedule does it, an invoice or payout at the sandbox. The sandbox's
 * own events are held meanwhile. Where one of them is needed first, it is sent from here under its own delivery id, so that the sandbox's
 * delivery is a redelivery.
 */
export class Sandbox {
  readonly #app: App
  /** Sends what the fixture needs once, as it is. */
  readonly #session: Session
  readonly #picked: PickedLink | Failure
  readonly #place: { url: string; apiKey: string }

  constructor(session: Session, picked: PickedLink | Failure, place: { url: string; apiKey: string }) {
    const { store } = session.options
    this.#app = session.app
    this.#session = { ...session, options: { as: 'store', times: 1, ...(store !== undefined && { store }) } }
    this.#picked = picked
    this.#place = place
  }

  async subjectFor({ name, needs }: ProcessorFixture): Promise<Subject | null> {
    await this.#set({ hold_events_until: this.#app.platform.clock.now() + HOLD_MS })
    if (needs === 'charged cycle') return cycleSubject(await this.#chargedCycle(name))
    if (needs === 'paid payout') return payoutSubject(await this.#paidPayout(name))
    if (needs === 'submitted payout') {
      const outcome = name === 'payout-failed' ? 'failed' : 'confirmed'
      return payoutSubject(await this.#submittedPayout(outcome, name))
    }
    const cycle = await this.#closedCycle(name)
    // With the payment reference that the sandbox gives, so that its own event repeats this one.
    const event = (await this.#events()).get(cycle.processor_invoice_id ?? '')
    const { payment_reference: reference } = event?.body.data ?? {}
    return cycleSubject(cycle, typeof reference === 'string' ? reference : undefined)
  }

  /** Lets the sandbox send its own events again. */
  async release(): Promise<void> {
    await this.#set({ hold_events_until: 0 })
  }

  /** What the sandbox says, or is about to say, about each of its invoices and payouts, by their ids. */
  async #events(): Promise<Map<string, SandboxEvent>> {
    const { events } = (await this.#call('GET', '/_sandbox/state')) as { events: SandboxEvent[] }
    return new Map(events.map((event) => [event.object_id, event]))
  }

  async #set(change: Partial<SandboxSwitches>): Promise<void> {
    await this.#call('PUT', '/_sandbox/switches', JSON.stringify(change))
  }

  async #call(method: 'GET' | 'PUT', path: string, body: string | null = null): Promise<unknown> {
    const { url, apiKey } = this.#place
    const answer = await request(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    }).catch(({ code, name }: NodeJS.ErrnoException) => {
      const problem = `The sandbox processor does not answer at ${url} (${code ?? name}).`
      throw new Failure(problem, { code: 'unavailable' })
    })
    const document = await answer.body.json()
    if (answer.statusCode === 200) return document
    throw new Failure(`The sandbox processor at ${url} refused ${path}: HTTP ${answer.statusCode}.`)
  }

  async #closedCycle(fixture: string): Promise<CycleRow> {
    return (await this.#newestCycle('closed')) ?? this.#closeNewCycle(1, fixture)
  }

  async #chargedCycle(fixture: string): Promise<CycleRow> {
    return (await this.#newestCycle('charged')) ?? this.#charge(await this.#closedCycle(fixture))
  }

  /** One whose invoice this sandbox has. */
  async #newestCycle(state: 'closed' | 'charged'): Promise<CycleRow | undefined> {
    const events = await this.#events()
    return newestCycle(this.#app, state, (id) => events.has(id))
  }

  /** Sells, closes the merchant's cycle as the schedule does at its end, and waits for the invoice. */
  async #closeNewCycle(commission: number, fixture: string): Promise<CycleRow> {
    const { platform, database } = this.#app
    const { slug, merchant_id: merchantId } = await this.#sell(commission, fixture)
    const [open] = await listCycles(platform, { merchantId, state: 'open', limit: 1, before: null })
    if (!open) throw new Failure(`The sale on ${slug} opened no billing cycle.`)
    await closeDueCycles(platform, { asOf: open.period_end, merchantId, actor: OPERATOR })
    return until('the invoice of the closed cycle', async () => {
      const cycle = await getCycle(database.reader, open.id)
      return cycle?.processor_invoice_id ? cycle : undefined
    })
  }

  /** Reports an order that pays at least this commission (paisa), and returns its link. */
  async #sell(commission: number, fixture: string): Promise<ShownLink> {
    const session = this.#session
    const link = this.#link()
    const [replay] = await sendEvents(session, [await prepareSale(session, link, commission)])
    const { event, sale } = replay ?? {}
    if (sale?.acceptance_status === 'accepted') return link
    const why = sale?.rejection_reason ?? event?.reason ?? 'the service did not take it'
    throw new Failure(`The sale that ${fixture} needs was not accepted: ${why}.`)
  }

  #link(): ShownLink {
    if (this.#picked instanceof Failure) throw this.#picked
    return this.#picked.link
  }

  async #charge(cycle: CycleRow): Promise<CycleRow> {
    await this.#saySoon(cycle.processor_invoice_id)
    const charged = await getCycle(this.#app.database.reader, cycle.id)
    if (charged?.state === 'charged') return charged
    throw new Failure(
      `The payment of billing cycle ${cycle.id} was not applied. See "affiliate webhooks events".`,
    )
  }

  /** A payout whose own event in the sandbox says this. */
  async #submittedPayout(outcome: 'confirmed' | 'failed', fixture: string): Promise<PayoutRow> {
    const submitted = async () => {
      const events = await this.#events()
      return newestPayout(this.#app, 'submitted', (id) => events.get(id)?.body.type === `payout.${outcome}`)
    }
    const there = await submitted()
    if (there) return there
    await this.#set({ fail_next_payouts: outcome === 'failed' ? 1 : 0 })
    if (!(await this.#payOut())) {
      // Enough for a payout from this one sale.
      await this.#charge(await this.#closeNewCycle(this.#app.platform.config.PAYOUT_THRESHOLD, fixture))
      if (!(await this.#payOut())) throw await this.#whyNoPayout()
    }
    return until('the payout to be submitted', submitted)
  }

  /** False when no creator could be paid. */
  async #payOut(): Promise<boolean> {
    const run = await runPayouts(this.#app.platform, this.#app.processor, { actor: OPERATOR })
    return run.some(({ kind }) => kind === 'paid_out')
  }

  async #whyNoPayout(): Promise<Failure> {
    const { creator, creator_id } = this.#link()
    const run = await runPayouts(this.#app.platform, this.#app.processor, { dryRun: true })
    const own = run.find(({ creatorId }) => creatorId === creator_id)
    const why = own?.kind === 'waits' ? own.why.replaceAll('_', ' ') : 'nothing is released'
    return new Failure(
      `No payout to ${creator.display_name} can be made: ${why}. See "affiliate payouts run --dry-run" and "affiliate flagged list".`,
    )
  }

  async #paidPayout(fixture: string): Promise<PayoutRow> {
    const events = await this.#events()
    const there = await newestPayout(this.#app, 'paid', (id) => events.has(id))
    if (there) return there
    const payout = await this.#submittedPayout('confirmed', fixture)
    await this.#saySoon(payout.processor_payout_id)
    const now = await getPayout(this.#app.database.reader, payout.id)
    if (now?.state === 'paid') return now
    throw new Failure(
      `The confirmation of payout ${payout.id} was not applied. See "affiliate webhooks events".`,
    )
  }

  /** Sends the sandbox's own event about one of its objects ahead of it. */
  async #saySoon(objectId: string | null): Promise<void> {
    const event = (await this.#events()).get(objectId ?? '')
    if (!event) throw new Failure(`The sandbox processor does not know ${objectId}.`)
    const named = { fixture: `sandbox ${event.body.type}`, expected: null }
    const body = Buffer.from(JSON.stringify(event.body))
    await sendEvents(this.#session, [signAsProcessor(this.#session, named, body, event.id)])
  }
}

/** Refuses a link whose creator has no payout destination, before anything is sent. */
export async function refuseWithoutDestination(
  { platform, database }: App,
  { creator_id: id, creator }: ShownLink,
): Promise<void> {
  if ((await destinationsInForce(database.reader, [id], platform.clock.now())).has(id)) return
  throw new Failure(
    `${creator.display_name} has no payout destination, so no payout can be made. Set one with PATCH /me, or name another link with --link.`,
  )
}

async function until<Found>(what: string, look: () => Promise<Found | undefined>): Promise<Found> {
  for (const deadline = performance.now() + TIMEOUT_MS; ; ) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > deadline) {
      const problem = `Waited ${TIMEOUT_MS / 1000} s for ${what}. Does a worker run? See "affiliate status".`
      throw new Failure(problem, { code: 'unavailable' })
    }
    await pause(POLL_MS)
  }
}
