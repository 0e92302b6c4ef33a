import { setTimeout as pause } from 'node:timers/promises'
import type { App } from '../../server/app.ts'
import { type CycleRow, getCycle, listCycles } from '../../server/billing/billing.service.ts'
import { closeDueCycles } from '../../server/billing/close-cycle.service.ts'
import { OPERATOR } from '../../server/flags/audit.service.ts'
import type { ShownLink } from '../../server/links/links.service.ts'
import { runPayouts } from '../../server/payouts/payout-run.service.ts'
import { getPayout, listPayouts, type PayoutRow } from '../../server/payouts/payouts.service.ts'
import type { SaleWithSlug } from '../../server/sales/sales.service.ts'
import { destinationsInForce } from '../../server/users/sealed-accounts.service.ts'
import { Failure } from '../failures.ts'
import type { ProcessorFixture } from './fixture-files.ts'
import { noLink } from './pick-link.ts'
import { cycleSubject, NO_SUBJECT, payoutSubject, type Subject, signAsProcessor } from './processor-events.ts'
import type { SandboxControl } from './sandbox-control.ts'
import type { Outcome, SignedEvent } from './signed-event.ts'

const TIMEOUT_MS = 15_000
const POLL_MS = 40

interface SandboxWork {
  app: App
  sandbox: SandboxControl
  link: ShownLink | null
  /** The store that sells, as the operator named it. */
  store: string | undefined
  /** Reports an order through the link that pays at least this commission (paisa). */
  sell(commission: number, link: ShownLink): Promise<SaleWithSlug>
  /** Sends an event and waits until it is settled. */
  send(event: SignedEvent): Promise<Outcome>
}

/**
 * Makes the cycle or payout that a processor fixture needs, the way it comes about: a signed order, a close as the schedule does it, an
 * invoice or payout at the sandbox. The sandbox's own events are held meanwhile. Where one of them is needed first, it is sent from here under
 * its own delivery id, so that the sandbox's delivery is a redelivery.
 */
export class SandboxState {
  readonly #work: SandboxWork

  constructor(work: SandboxWork) {
    this.#work = work
  }

  async subjectFor({ name, needs }: ProcessorFixture): Promise<Subject> {
    const { sandbox } = this.#work
    if (needs === 'nothing') return NO_SUBJECT
    await sandbox.hold()
    if (needs === 'closed cycle') return this.#cycleSubject(await this.#closedCycle())
    if (needs === 'charged cycle') return known(cycleSubject(await this.#chargedCycle()))
    if (needs === 'paid payout') return known(payoutSubject(await this.#paidPayout()))
    return known(
      payoutSubject(await this.#submittedPayout(name === 'payout-failed' ? 'failed' : 'confirmed')),
    )
  }

  /** With the payment reference that the sandbox gives, so that its own event repeats this one. */
  async #cycleSubject(cycle: CycleRow): Promise<Subject> {
    const event = (await this.#work.sandbox.events()).get(cycle.processor_invoice_id ?? '')
    const { payment_reference: reference } = event?.body.data ?? {}
    return known(cycleSubject(cycle, typeof reference === 'string' ? reference : undefined))
  }

  async #closedCycle(): Promise<CycleRow> {
    return (await this.#newestCycle('closed')) ?? this.#closeNewCycle(1)
  }

  async #chargedCycle(): Promise<CycleRow> {
    return (await this.#newestCycle('charged')) ?? this.#charge(await this.#closedCycle())
  }

  /** One whose invoice this sandbox has. */
  async #newestCycle(state: 'closed' | 'charged'): Promise<CycleRow | undefined> {
    const { app, sandbox } = this.#work
    const known = await sandbox.events()
    const cycles = await listCycles(app.platform, { merchantId: null, state, limit: 100, before: null })
    return cycles.find((cycle) => known.has(cycle.processor_invoice_id ?? ''))
  }

  /** Sells, closes the merchant's cycle as the schedule does at its end, and waits for the invoice. */
  async #closeNewCycle(commission: number): Promise<CycleRow> {
    const { app, sell } = this.#work
    const link = await this.#link()
    await sell(commission, link)
    const filter = { merchantId: link.merchantId, state: 'open', limit: 1, before: null } as const
    const [open] = await listCycles(app.platform, filter)
    if (!open) throw new Failure(`The sale on ${link.slug} opened no billing cycle.`)
    await closeDueCycles(app.platform, {
      asOf: open.period_end,
      merchantId: link.merchantId,
      actor: OPERATOR,
    })
    return until('the invoice of the closed cycle', async () => {
      const cycle = await getCycle(app.database.reader, open.id)
      return cycle?.processor_invoice_id ? cycle : null
    })
  }

  async #link(): Promise<ShownLink> {
    const { app, link, store } = this.#work
    if (link) return link
    throw await noLink(app, store)
  }

  async #charge(cycle: CycleRow): Promise<CycleRow> {
    await this.#saySoon(cycle.processor_invoice_id)
    const charged = await getCycle(this.#work.app.database.reader, cycle.id)
    if (charged?.state === 'charged') return charged
    throw new Failure(
      `The payment of billing cycle ${cycle.id} was not applied. See "affiliate webhooks events".`,
    )
  }

  /** A payout whose own event in the sandbox says this. */
  async #submittedPayout(outcome: 'confirmed' | 'failed'): Promise<PayoutRow> {
    const there = await this.#payoutOf(outcome)
    if (there) return there
    const { app, sandbox } = this.#work
    await sandbox.failNextPayouts(outcome === 'failed' ? 1 : 0)
    if (!(await this.#payOut())) {
      // Enough for a payout from this one sale.
      await this.#charge(await this.#closeNewCycle(app.platform.config.PAYOUT_THRESHOLD))
      if (!(await this.#payOut())) throw await this.#whyNoPayout()
    }
    return until('the payout to be submitted', () => this.#payoutOf(outcome))
  }

  async #payoutOf(outcome: 'confirmed' | 'failed'): Promise<PayoutRow | null> {
    const { app, sandbox } = this.#work
    const events = await sandbox.events()
    const payouts = await listPayouts(app.platform, null, { state: 'submitted', limit: 100, before: null })
    const says = ({ processor_payout_id: id }: PayoutRow) => events.get(id ?? '')?.body.type
    return payouts.find((payout) => says(payout) === `payout.${outcome}`) ?? null
  }

  /** False when no creator could be paid. */
  async #payOut(): Promise<boolean> {
    const { app } = this.#work
    const run = await runPayouts(app.platform, app.processor, { actor: OPERATOR })
    return run.some(({ kind }) => kind === 'paid_out')
  }

  async #whyNoPayout(): Promise<Failure> {
    const { app } = this.#work
    const link = await this.#link()
    const run = await runPayouts(app.platform, app.processor, { dryRun: true })
    const own = run.find(({ creatorId }) => creatorId === link.creatorId)
    const why = own?.kind === 'waits' ? own.why.replaceAll('_', ' ') : 'nothing is released'
    return new Failure(
      `No payout to ${link.creator.display_name} can be made: ${why}. See "affiliate payouts run --dry-run" and "affiliate flagged list".`,
    )
  }

  async #paidPayout(): Promise<PayoutRow> {
    const { app, sandbox } = this.#work
    const events = await sandbox.events()
    const paid = await listPayouts(app.platform, null, { state: 'paid', limit: 100, before: null })
    const there = paid.find(({ processor_payout_id: id }) => events.has(id ?? ''))
    if (there) return there
    const payout = await this.#submittedPayout('confirmed')
    await this.#saySoon(payout.processor_payout_id)
    const now = await getPayout(app.platform, payout.id)
    if (now?.state === 'paid') return now
    throw new Failure(
      `The confirmation of payout ${payout.id} was not applied. See "affiliate webhooks events".`,
    )
  }

  /** Sends the sandbox's own event about one of its objects ahead of it. */
  async #saySoon(objectId: string | null): Promise<void> {
    const { app, sandbox, send } = this.#work
    const event = (await sandbox.events()).get(objectId ?? '')
    if (!event) throw new Failure(`The sandbox processor does not know ${objectId}.`)
    const signed = { fixture: `sandbox ${event.body.type}`, expected: null, deliveryId: event.id }
    await send(signAsProcessor(app, signed, Buffer.from(JSON.stringify(event.body)), {}))
  }
}

/** Refuses a link whose creator has no payout destination, before anything is sent. */
export async function refuseWithoutDestination(
  { platform, database }: App,
  link: ShownLink | null,
): Promise<void> {
  if (link === null) return
  const now = platform.clock.now()
  if ((await destinationsInForce(database.reader, [link.creatorId], now)).has(link.creatorId)) return
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
