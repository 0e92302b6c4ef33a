import type { LinkRecord } from '../../links/links.service.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import type { Processor } from '../../processor/processor.ts'
import { addLink, addLiveOffer } from '../testkit/listings.ts'
import { closeOpenCycle, giveBillingAccount, type Marketplace, type Shop } from '../testkit/marketplace.ts'
import type { CallKind } from './call-faults.ts'

/** Commission of 1,000 rupees: what a payout needs. */
const SALE = 800_000

/** A closed cycle whose invoice, or a payout whose transfer, is to be asked for. */
export interface Subject {
  kind: CallKind
  /** The cycle's or payout's id, which is the reference at the processor. */
  id: string
  /** Who is billed or paid. */
  userId: string
}

/** Makes what calls are about, many at once, through the services themselves. */
export class Subjects {
  readonly #market: Marketplace
  readonly #processor: Processor
  readonly #settle: () => Promise<void>
  /** Each with a link of one creator without a destination, who is never paid. */
  readonly #billed: { shop: Shop; link: LinkRecord }[] = []
  /** Each with a link to one offer. */
  readonly #paid: { creator: Actor; link: LinkRecord }[] = []
  #unpaid: Actor | null = null
  #payer: { shop: Shop; offerId: string } | null = null

  /** `settle` sends what waits and has the processor confirm it. */
  constructor(market: Marketplace, processor: Processor, settle: () => Promise<void>) {
    this.#market = market
    this.#processor = processor
    this.#settle = settle
  }

  async invoices(count: number): Promise<Subject[]> {
    while (this.#billed.length < count) this.#billed.push(await this.#addBilled())
    const billed = this.#billed.slice(0, count)
    await Promise.all(billed.map(({ shop, link }) => this.#market.order(shop, link, SALE)))
    await this.#settle()
    return Promise.all(billed.map(({ shop }) => this.#close(shop)))
  }

  async payouts(count: number): Promise<Subject[]> {
    while (this.#paid.length < count) this.#paid.push(await this.#addPaid())
    const paid = this.#paid.slice(0, count)
    const payer = await this.#payerWithOffer()
    await Promise.all(paid.map(({ link }) => this.#market.order(payer.shop, link, SALE)))
    await this.#settle()
    await this.#close(payer.shop)
    await this.#settle()
    const made = await runPayouts(this.#market.platform, this.#processor)
    return paid.map(({ creator: { userId } }) => {
      const outcome = made.find(({ creatorId }) => creatorId === userId)
      if (outcome?.kind !== 'paid_out' || !outcome.payoutId)
        throw new Error(`no payout for ${userId}: ${JSON.stringify(outcome)}`)
      return { kind: 'payout', id: outcome.payoutId, userId }
    })
  }

  /** The next payouts are to creators who have none so far. */
  forgetCreators(): void {
    this.#paid.length = 0
  }

  async #close(shop: Shop): Promise<Subject> {
    const id = await closeOpenCycle(this.#market.platform, shop)
    return { kind: 'invoice', id, userId: shop.merchantId }
  }

  async #addBilled() {
    this.#unpaid ??= await this.#market.addCreator('never paid', false)
    const shop = await this.#addShop()
    return { shop, link: await this.#market.addLink(shop, this.#unpaid) }
  }

  async #addShop() {
    const shop = await this.#market.addShop()
    if (this.#processor.needsBillingAccount) await giveBillingAccount(this.#market.platform, shop.merchantId)
    return shop
  }

  async #addPaid() {
    const payer = await this.#payerWithOffer()
    const creator = await this.#market.addCreator()
    const link = await addLink(this.#market.platform, payer.shop.actor, creator, payer.offerId)
    return { creator, link }
  }

  async #payerWithOffer() {
    if (this.#payer) return this.#payer
    const shop = await this.#addShop()
    const { id } = await addLiveOffer(this.#market.platform, shop.actor)
    this.#payer = { shop, offerId: id }
    return this.#payer
  }
}

/** Where a subject stands. */
export interface Standing {
  state: string
  /** What is due, paisa. */
  amount: number
  /** The processor's id, as we hold it. */
  processorId: string | null
}

export async function standingsOf(
  { platform }: Marketplace,
  subjects: readonly Subject[],
): Promise<Map<string, Standing>> {
  const ids = subjects.map(({ id }) => id)
  const { reader } = platform.database
  const cycles = await reader
    .selectFrom('billing_cycles')
    .select(['id', 'state', 'amount_due as amount', 'processor_invoice_id as processorId'])
    .where('id', 'in', ids)
    .execute()
  const payouts = await reader
    .selectFrom('payouts')
    .select(['id', 'state', 'amount', 'processor_payout_id as processorId'])
    .where('id', 'in', ids)
    .execute()
  return new Map([...cycles, ...payouts].map(({ id, ...standing }) => [id, standing]))
}

/** The attempts made for each subject. */
export async function attemptsFor({ platform }: Marketplace, subjects: readonly Subject[]) {
  const rows = await platform.database.reader
    .selectFrom('processor_attempts')
    .selectAll()
    .where(
      'subject_id',
      'in',
      subjects.map(({ id }) => id),
    )
    .execute()
  return Map.groupBy(rows, (row) => row.subject_id)
}
