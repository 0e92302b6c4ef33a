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
import { noLink } from './pick-link.ts'
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
export function sandboxOf(session: Session, link: ShownLink | null): Sandbox | null {
  const { sandbox, platform } = session.app
  const { PROCESSOR, PROCESSOR_URL, PROCESSOR_API_KEY } = platform.config
  const url = PROCESSOR_URL ?? sandbox?.url
  if (PROCESSOR !== 'sandbox' || !sandbox || !url) return null
  return new Sandbox(session, link, { url, apiKey: PROCESSOR_API_KEY ?? sandbox.api_key })
}

/**
 * The sandbox processor of the running service, as its settings and `sandbox.json` name it. Makes the cycle or payout that a processor
 * fixture needs, the way it comes about: a signed order, a close as the schedule does it, an invoice or payout at the sandbox. The sandbox's
 * own events are held meanwhile. Where one of them is needed first, it is sent from here under its own delivery id, so that the sandbox's
 * delivery is a redelivery.
 */
export class Sandbox {
  /** Sends what the fixture needs once, as it is. */
  readonly #session: Session
  readonly #given: ShownLink | null
  readonly #place: { url: string; apiKey: string }

  constructor(session: Session, link: ShownLink | null, place: { url: string; apiKey: string }) {
    const { store } = session.options
    this.#session = { ...session, options: { as: 'store', times: 1, ...(store !== undefined && { store }) } }
    this.#given = link
    this.#place = place
  }

  async subjectFor({ name, needs }: ProcessorFixture): Promise<Subject> {
    await this.#set({ hold_events_until: this.#session.app.platform.clock.now() + HOLD_MS })
    if (needs === 'closed cycle') return this.#cycleSubject(await this.#closedCycle(name))
    if (needs === 'charged cycle') return known(cycleSubject(await this.#chargedCycle(name)))
    if (needs === 'paid payout') return known(payoutSubject(await this.#paidPayout(name)))
    const outcome = name === 'payout-failed' ? 'failed' : 'confirmed'
    return known(payoutSubject(await this.#submittedPayout(outcome, name)))
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
    await this.#call('PUT', '/_sandbox/switches', change)
  }

  async #call(method: 'GET' | 'PUT', path: string, body?: unknown): Promise<unknown> {
    const { url, apiKey } = this.#place
    const answer = await request(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    }).catch(({ code, name }: NodeJS.ErrnoException) => {
      throw new Failure(`The sandbox processor does not answer at ${url} (${code ?? name}).`, {
        code: 'unavailable',
      })
    })
    const document = await answer.body.json()
    if (answer.statusCode === 200) return document
    throw new Failure(`The sandbox processor at ${url} refused ${path}: HTTP ${answer.statusCode}.`)
  }

  /** With the payment reference that the sandbox gives, so that its own event repeats this one. */
  async #cycleSubject(cycle: CycleRow): Promise<Subject> {
    const event = (await this.#events()).get(cycle.processor_invoice_id ?? '')
    const { payment_reference: reference } = event?.body.data ?? {}
    return known(cycleSubject(cycle, typeof reference === 'string' ? reference : undefined))
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
    return newestCycle(this.#session.app, state, (id) => events.has(id))
  }

  /** Sells, closes the merchant's cycle as the schedule does at its end, and waits for the invoice. */
  async #closeNewCycle(commission: number, fixture: string): Promise<CycleRow> {
    const { platform, database } = this.#session.app
    const { slug, merchant_id: merchantId } = await this.#sell(commission, fixture)
    const filter = { merchantId, state: 'open', limit: 1, before: null } as const
    const [open] = await listCycles(platform, filter)
    if (!open) throw new Failure(`The sale on ${slug} opened no billing cycle.`)
    await closeDueCycles(platform, { asOf: open.period_end, merchantId, actor: OPERATOR })
    return until('the invoice of the closed cycle', async () => {
      const cycle = await getCycle(database.reader, open.id)
      return cycle?.processor_invoice_id ? cycle : null
    })
  }

  /** Reports an order that pays at least this commission (paisa), and returns its link. */
  async #sell(commission: number, fixture: string): Promise<ShownLink> {
    const session = this.#session
    const link = await this.#link()
    const [replay] = await sendEvents(session, [await prepareSale(session, link, commission)])
    const { event, sale } = replay ?? {}
    if (sale?.acceptance_status === 'accepted') return link
    const why = sale?.rejection_reason ?? event?.reason ?? 'the service did not take it'
    throw new Failure(`The sale that ${fixture} needs was not accepted: ${why}.`)
  }

  async #link(): Promise<ShownLink> {
    const { app, options } = this.#session
    if (this.#given) return this.#given
    throw await noLink(app, options.store)
  }

  async #charge(cycle: CycleRow): Promise<CycleRow> {
    await this.#saySoon(cycle.processor_invoice_id)
    const charged = await getCycle(this.#session.app.database.reader, cycle.id)
    if (charged?.state === 'charged') return charged
    throw new Failure(
      `The payment of billing cycle ${cycle.id} was not applied. See "affiliate webhooks events".`,
    )
  }

  /** A payout whose own event in the sandbox says this. */
  async #submittedPayout(outcome: 'confirmed' | 'failed', fixture: string): Promise<PayoutRow> {
    const { app } = this.#session
    const submitted = async () => {
      const events = await this.#events()
      const says = (id: string) => events.get(id)?.body.type === `payout.${outcome}`
      return (await newestPayout(app, 'submitted', says)) ?? null
    }
    const there = await submitted()
    if (there) return there
    await this.#set({ fail_next_payouts: outcome === 'failed' ? 1 : 0 })
    if (!(await this.#payOut())) {
      // Enough for a payout from this one sale.
      await this.#charge(await this.#closeNewCycle(app.platform.config.PAYOUT_THRESHOLD, fixture))
      if (!(await this.#payOut())) throw await this.#whyNoPayout()
    }
    return until('the payout to be submitted', submitted)
  }

  /** False when no creator could be paid. */
  async #payOut(): Promise<boolean> {
    const { app } = this.#session
    const run = await runPayouts(app.platform, app.processor, { actor: OPERATOR })
    return run.some(({ kind }) => kind === 'paid_out')
  }

  async #whyNoPayout(): Promise<Failure> {
    const { app } = this.#session
    const link = await this.#link()
    const run = await runPayouts(app.platform, app.processor, { dryRun: true })
    const own = run.find(({ creatorId }) => creatorId === link.creator_id)
    const why = own?.kind === 'waits' ? own.why.replaceAll('_', ' ') : 'nothing is released'
    return new Failure(
      `No payout to ${link.creator.display_name} can be made: ${why}. See "affiliate payouts run --dry-run" and "affiliate flagged list".`,
    )
  }

  async #paidPayout(fixture: string): Promise<PayoutRow> {
    const { app } = this.#session
    const events = await this.#events()
    const there = await newestPayout(app, 'paid', (id) => events.has(id))
    if (there) return there
    const payout = await this.#submittedPayout('confirmed', fixture)
    await this.#saySoon(payout.processor_payout_id)
    const now = await getPayout(app.database.reader, payout.id)
    if (now?.state === 'paid') return now
    throw new Failure(
      `The confirmation of payout ${payout.id} was not applied. See "affiliate webhooks events".`,
    )
  }

  /** Sends the sandbox's own event about one of its objects ahead of it. */
  async #saySoon(objectId: string | null): Promise<void> {
    const event = (await this.#events()).get(objectId ?? '')
    if (!event) throw new Failure(`The sandbox processor does not know ${objectId}.`)
    const signed = { fixture: `sandbox ${event.body.type}`, expected: null, deliveryId: event.id }
    const body = Buffer.from(JSON.stringify(event.body))
    await sendEvents(this.#session, [signAsProcessor(this.#session, signed, body)])
  }
}

/** Refuses a link whose creator has no payout destination, before anything is sent. */
export async function refuseWithoutDestination(
  { platform, database }: App,
  link: ShownLink | null,
): Promise<void> {
  if (link === null) return
  const now = platform.clock.now()
  if ((await destinationsInForce(database.reader, [link.creator_id], now)).has(link.creator_id)) return
  throw new Failure(
    `${link.creator.display_name} has no payout destination, so no payout can be made. Set one with PATCH /me, or name another link with --link.`,
  )
}

function known(subject: Subject | null): Subject {
  if (subject) return subject
  throw new Error('the processor gave no id')
}

async function until<Found>(what: string, look: () => Promise<Found | null>): Promise<Found> {
  const deadline = performance.now() + TIMEOUT_MS
  for (;;) {
    const found = await look()
    if (found !== null) return found
    if (performance.now() > deadline) {
      throw new Failure(
        `Waited ${TIMEOUT_MS / 1000} s for ${what}. Does a worker run? See "affiliate status".`,
        {
          code: 'unavailable',
        },
      )
    }
    await pause(POLL_MS)
  }
}
