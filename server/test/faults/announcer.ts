import { formatMoney } from '../../../shared/money.ts'
import type { Marketplace } from '../testkit/marketplace.ts'
import type { HeldCall } from './processor-double.ts'
import type { Story } from './story.ts'
import type { Subject } from './subjects.ts'
import type { Wire } from './wire.ts'

/** The processor's own events about what it holds: its only way of moving anything here. */
export class Announcer {
  readonly #market: Marketplace
  readonly #wire: Wire
  readonly #stories = new Map<string, Story>()
  /** The delivery ids of the events about each reference. */
  readonly #deliveries = new Map<string, string[]>()
  readonly #announced = new Set<HeldCall>()

  constructor(market: Marketplace, wire: Wire) {
    this.#market = market
    this.#wire = wire
  }

  expect(subject: Subject, story: Story): void {
    this.#stories.set(subject.id, story)
  }

  deliveriesAbout(reference: string): readonly string[] {
    return this.#deliveries.get(reference) ?? []
  }

  /** The money moves before our call is answered. */
  async announceEarly(held: HeldCall): Promise<void> {
    if (this.deliveriesAbout(held.reference).length === 0) await this.#say(held)
  }

  /** Says what is still to be said of everything that is held; answers of how many. */
  async announceAll(all: readonly HeldCall[]): Promise<number> {
    const fresh = all.filter((held) => !this.#announced.has(held))
    for (const held of fresh) await this.#announce(held)
    return fresh.length
  }

  async #announce(held: HeldCall): Promise<void> {
    this.#announced.add(held)
    const delivery = this.#stories.get(held.reference)?.delivery ?? 'once'
    if (delivery === 'with_another_amount') await this.#say(held, { amount: formatMoney(777) })
    if (delivery === 'with_another_amount' || this.deliveriesAbout(held.reference).length === 0) {
      await this.#say(held)
    }
    if (delivery === 'twice') await this.#say(held)
    if (delivery === 'contradicting') await this.#say(held, { payment_reference: 'another payment' }, true)
  }

  /** The same word about the same thing has the same content each time, and a delivery id of its own. */
  async #say(held: HeldCall, changes: Record<string, unknown> = {}, opposite = false): Promise<void> {
    const story = this.#stories.get(held.reference)
    const failed = held.kind === 'payout' && story?.word === 'failed'
    held.status = failed ? 'failed' : 'paid'
    const type =
      held.kind === 'invoice'
        ? 'billing.payment_confirmed'
        : failed !== opposite
          ? 'payout.failed'
          : 'payout.confirmed'
    const data = {
      invoice_id: held.id,
      payout_id: held.id,
      payment_reference: `pay_${held.id}`,
      reference: held.reference,
      amount: held.amount,
      currency: held.currency,
      reason: 'returned by the bank',
      ...changes,
    }
    const before = this.deliveriesAbout(held.reference)
    const deliveryId = `${held.id}_event_${before.length + 1}`
    this.#deliveries.set(held.reference, [...before, deliveryId])
    await this.#market.processorSends(this.#wire.event(type, data, deliveryId), deliveryId)
  }
}
