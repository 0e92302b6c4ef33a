import { sql } from 'kysely'
import { applyToOffer, decideOnApplication } from '../../applications/applications.service.ts'
import { closeDueCycles } from '../../billing/close-cycle.service.ts'
import { grantCredit } from '../../billing/credits.service.ts'
import { type ClickRecorder, createClickRecorder } from '../../clicks/clicks.service.ts'
import { OPERATOR } from '../../flags/audit.service.ts'
import { openFlagAbout, resolveFlag } from '../../flags/flags.service.ts'
import type { EventSource } from '../../inbox/inbox.service.ts'
import { createInboxRecorder, type InboxRecorder } from '../../inbox/intake.service.ts'
import { processorEventApplier } from '../../jobs/apply-processor-events.ts'
import { applyStoreEvents } from '../../jobs/apply-store-events.ts'
import type { ApplyEvents } from '../../jobs/drain-events.ts'
import { makeDueCalls } from '../../jobs/processor-calls.ts'
import { setCoupon } from '../../links/coupons.service.ts'
import { resolveTarget } from '../../links/links.service.ts'
import { setOfferStatus, updateOffer } from '../../offers/offers.service.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import { expirePendingOrders } from '../../pending-orders/pending-orders.service.ts'
import type { Platform } from '../../platform/platform.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../../processor/events.settings.ts'
import { createSignatureScheme } from '../../processor/signatures/choose-scheme.ts'
import { signShopifyBody } from '../../shopify/signature.ts'
import { removeStore } from '../../stores/remove-store.service.ts'
import { connectStore, rotateSecret } from '../../stores/stores.service.ts'
import { claimsForWebhook, findSigner } from '../../stores/webhook-claims.service.ts'
import { reinstateUser, suspendUser } from '../../users/users.service.ts'
import type { Grant } from '../oracle/billing.ts'
import type { AnswerTo, CallAnswer } from '../oracle/calls.ts'
import type { ProcessorDelivery, Receipt, StoreDelivery } from '../oracle/inbox.ts'
import type { Link, Terms } from '../oracle/state.ts'
import { addLiveOffer, addShownHost } from '../testkit/listings.ts'
import { giveDestination } from '../testkit/marketplace.ts'
import { addUser, outcomeOf } from '../testkit/people.ts'
import { type Answer, ScriptedProcessor } from '../testkit/scripted-processor.ts'
import { drainStrictly } from '../testkit/strict-drain.ts'
import { KnownIds } from './known-ids.ts'

const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
const FORGERS_SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const SCHEME = createSignatureScheme({ scheme: 'standard-webhooks' })
const APPLY_PROCESSOR_EVENTS = processorEventApplier(GENERIC_PROCESSOR_EVENTS)
const ANSWERS: Record<CallAnswer, Answer> = {
  ok: 'ok',
  lost: 'lose',
  dropped: 'drop',
  refused: 'refuse',
  throttled: 'throttle',
}

/** What there is to look for. */
export interface Due {
  orders: boolean
  events: boolean
  calls: boolean
}

/** The processor's own id of what it holds under one of our references. */
export function processorId(kind: 'inv' | 'po', reference: string): string {
  return `${kind}-${reference}`
}

/** The real services under the names of a story: everything but HTTP, on one database, with an inbox and a processor in memory. */
export class Services {
  readonly platform: Platform
  readonly processor = new ScriptedProcessor()
  readonly ids: KnownIds
  readonly #inbox: InboxRecorder
  readonly #clicks: ClickRecorder
  /** What has come in and is still to be written, all at once. */
  #comingIn: (() => Promise<void>)[] = []

  constructor(platform: Platform, answerTo: AnswerTo) {
    this.platform = platform
    this.ids = new KnownIds(platform)
    this.processor.answerTo = async (reference, nth) =>
      ANSWERS[answerTo(await this.ids.nameOf(reference), nth)]
    this.processor.nextId = (kind, _count, reference) => processorId(kind, reference)
    this.#inbox = createInboxRecorder(platform)
    this.#clicks = createClickRecorder(platform)
  }

  async addPerson(name: string, role: 'merchant' | 'creator'): Promise<string> {
    const { userId } = await addUser(this.platform, role, name)
    this.ids.add('person', name, userId)
    return `${userId}@example.com`
  }

  async addDestination(creator: string): Promise<void> {
    await giveDestination(this.platform, this.#person(creator))
  }

  async setSuspended(name: string, suspended: boolean): Promise<void> {
    const change = { userId: this.#person(name), actor: OPERATOR, reason: null }
    await (suspended ? suspendUser : reinstateUser)(this.platform, change)
  }

  async connectStore(name: string, merchant: string, webhook_secret: string): Promise<void> {
    const access = { shop_domain: domainOf(name), webhook_secret }
    const store = await connectStore(this.platform, this.#person(merchant), access)
    await addShownHost(this.platform, store.id)
    this.ids.add('store', name, store.id)
  }

  async removeStore(name: string, merchant: string): Promise<void> {
    await removeStore(this.platform, this.#person(merchant), this.ids.id('store', name))
  }

  async rotateSecret(name: string, merchant: string, secret: string): Promise<void> {
    await rotateSecret(this.platform, this.#person(merchant), this.ids.id('store', name), { secret })
  }

  async addLiveOffer(name: string, merchant: string, terms: Terms): Promise<void> {
    const userId = this.#person(merchant)
    const actor = { userId, role: 'merchant', sessionId: userId } as const
    this.ids.add('offer', name, (await addLiveOffer(this.platform, actor, fieldsOf(terms))).id)
  }

  changeOffer(name: string, merchant: string, terms: Terms): Promise<boolean> {
    const offer = this.ids.id('offer', name)
    return isDone(updateOffer(this.platform, this.#person(merchant), offer, fieldsOf(terms)))
  }

  setOfferStatus(name: string, merchant: string, to: 'live' | 'paused' | 'ended'): Promise<boolean> {
    return isDone(setOfferStatus(this.platform, this.#person(merchant), this.ids.id('offer', name), to))
  }

  /** A creator applies and the merchant approves; false when that is refused. */
  async approve(name: string, offer: string, merchant: string, creator: string): Promise<boolean> {
    const wish = { message: null, promotion_url: null }
    const applying = applyToOffer(this.platform, this.#person(creator), this.ids.id('offer', offer), wish)
    if (!(await isDone(applying))) return false
    const answer = { decision: 'approve', reason: null } as const
    const { id } = await applying
    const deciding = decideOnApplication(this.platform, this.#person(merchant), id, answer)
    if (!(await isDone(deciding))) return false
    const { link } = await deciding
    if (link) this.ids.addLink(name, link.id, link.slug)
    return link !== null
  }

  /** False when another link of the merchant has the code. */
  setCoupon(link: string, merchant: string, code: string | null): Promise<boolean> {
    const change = { slug: this.ids.slug(link), actor: this.#person(merchant), code }
    return isDone(setCoupon(this.platform, change))
  }

  /** Follows a link, as the redirect does; the click's id, and whether the visitor got it along. */
  async visit(link: Link): Promise<{ id: string; state: 'tracked' | 'untracked' | 'gone' }> {
    const target = await resolveTarget(this.platform, this.ids.slug(link.name))
    if (!target) throw new Error(`${link.name} leads nowhere`)
    const id = this.platform.ids.next()
    if (target.state === 'gone') return { id, state: 'gone' }
    const tracked = target.state === 'tracked'
    const createdAt = this.platform.clock.now()
    const { linkId } = target
    this.#comingIn.push(() => this.#clicks.record({ id, linkId, tracked, kind: 'visit', createdAt }))
    return { id, state: target.state }
  }

  /** Signature first, on the bytes; then the inbox. `heard` receives the result once it is on disk. */
  async receiveFromStore(delivery: StoreDelivery, heard: (receipt: Receipt) => void): Promise<void> {
    const rawBody = Buffer.from(delivery.body)
    const claims = await claimsForWebhook(this.platform, domainOf(delivery.store))
    const store = await findSigner(claims, rawBody, signShopifyBody(rawBody, delivery.secret))
    if (!store) return heard('refused')
    const { deliveryId, topic } = delivery
    const event = { source: 'store', scope: store.storeId, deliveryId, topic, rawBody } as const
    this.#comingIn.push(() => this.#inbox.record(event).then(heard))
  }

  receiveFromProcessor(delivery: ProcessorDelivery, heard: (receipt: Receipt) => void): void {
    const rawBody = Buffer.from(delivery.body)
    const secret = delivery.forged ? FORGERS_SECRET : WEBHOOK_SECRET
    const headers = SCHEME.sign({ deliveryId: delivery.deliveryId, rawBody, secret, now: delivery.signedAt })
    const now = this.platform.clock.now()
    const verdict = SCHEME.verify({ headers, rawBody, secrets: [WEBHOOK_SECRET], now })
    if (verdict.ok) {
      const deliveryId = verdict.deliveryId ?? ''
      const event = { source: 'processor', scope: 'processor', deliveryId, topic: null, rawBody } as const
      this.#comingIn.push(() => this.#inbox.record(event).then(heard))
    } else heard('refused')
  }

  /** Writes everything that has come in, and resolves when it is on disk. */
  async flush(): Promise<void> {
    const comingIn = this.#comingIn
    this.#comingIn = []
    await Promise.all(comingIn.map((write) => write()))
  }

  /**
   * What the workers do with everything that is due now. Unlike the workers it takes no error for an answer, not even of a batch that could
   * then be applied one by one.
   */
  async work(batchSize: number, due: Due): Promise<void> {
    await this.flush()
    const drain = async (source: EventSource, apply: ApplyEvents) => {
      while ((await drainStrictly(this.platform, source, batchSize, apply, undefined, () => true)) > 0);
    }
    if (due.orders) await drain('store', applyStoreEvents)
    if (due.events) await drain('processor', APPLY_PROCESSOR_EVENTS)
    while (due.calls && (await makeDueCalls(this.platform, this.processor)) > 0);
  }

  /**
   * How long something waits for its next try is left to chance, so that callers do not come back together. A story must go the same
   * way each time it runs: whatever waits is due the next time that the workers work, in the order of its coming.
   */
  async evenWaits(): Promise<void> {
    const now = this.platform.clock.now()
    await this.platform.database.transaction(async (tx) => {
      await sql`update inbound_events set next_attempt_at = ${now} where state = 'pending'`.execute(tx)
      await sql`update processor_attempts set next_try_at = ${now} where state = 'waiting'`.execute(tx)
    })
  }

  async closeCycles(asOf: number | null): Promise<void> {
    await closeDueCycles(this.platform, asOf === null ? {} : { asOf })
  }

  async expirePendingOrders(): Promise<void> {
    await expirePendingOrders(this.platform)
  }

  async runPayouts(): Promise<void> {
    await runPayouts(this.platform, this.processor)
  }

  async grantCredit({ merchant, amount, reference }: Grant): Promise<string> {
    const by = { reason: 'r', actor: OPERATOR }
    const merchantId = this.#person(merchant)
    const granting = grantCredit(this.platform, { merchantId, amount, reference, ...by })
    if (!(await isDone(granting))) return 'refused'
    return (await granting).created ? 'granted' : 'known'
  }

  /** Takes the flag about a creator's failed payouts off the queue; false when there is none. */
  async resolveFailures(creator: string): Promise<boolean> {
    const about = { subjectType: 'user', subjectId: this.#person(creator) } as const
    const flag = await openFlagAbout(this.platform.database.reader, {
      kind: 'payout_failed_repeatedly',
      ...about,
    })
    if (!flag) return false
    await resolveFlag(this.platform, { flagId: flag.id, actor: OPERATOR, note: 'looked at' })
    return true
  }

  async idle(): Promise<void> {
    await Promise.all([this.#inbox.idle(), this.#clicks.idle()])
  }

  #person(name: string): string {
    return this.ids.id('person', name)
  }
}

/** Whether it was not refused. */
async function isDone(work: Promise<unknown>): Promise<boolean> {
  return (await outcomeOf(work)) === 'ok'
}

function domainOf(store: string): string {
  return `${store.toLowerCase().replace(' ', '-')}.myshopify.com`
}

function fieldsOf({ rate, windowDays, productIds }: Terms) {
  return {
    commission_rate: rate,
    attribution_window_days: windowDays,
    product_ids: productIds.length === 0 ? null : [...productIds],
  }
}
