import { createHash } from 'node:crypto'
import { applyToOffer, decideOnApplication } from '../../server/applications/applications.service.ts'
import { grantCredit } from '../../server/billing/credits.service.ts'
import { retryInvoice } from '../../server/billing/invoices.service.ts'
import { createClickRecorder, rollUpClicks } from '../../server/clicks/clicks.service.ts'
import { startExport } from '../../server/exports/exports.service.ts'
import { recordOperatorDelivery } from '../../server/inbox/operator-deliveries.service.ts'
import { reconcile } from '../../server/jobs/reconciliation.ts'
import { noteFinished, noteStarted } from '../../server/jobs/schedule-runs.service.ts'
import { CHANNELS } from '../../server/jobs/webhook-loops.ts'
import { sealLedger } from '../../server/ledger/seals/seals.service.ts'
import { setCoupon } from '../../server/links/coupons.service.ts'
import type { LinkRecord } from '../../server/links/links.service.ts'
import { updateNotifications } from '../../server/mail/notifications.service.ts'
import { OPERATOR } from '../../server/moderation/audit.service.ts'
import { resolveFlag } from '../../server/moderation/flags.service.ts'
import { watchMarketplace } from '../../server/moderation/watches/watches.service.ts'
import {
  createOffer,
  type OfferFields,
  setOfferStatus,
  vetOffer,
} from '../../server/offers/offers.service.ts'
import { distributeEvents } from '../../server/outbox/outbox.service.ts'
import { runPayouts } from '../../server/payouts/payout-run.service.ts'
import { retryPayout } from '../../server/payouts/retry-payout.service.ts'
import type { Actor } from '../../server/platform/api/procedure.ts'
import { requestCredit } from '../../server/sales/credit-request.service.ts'
import { releaseClaim, removeStore } from '../../server/stores/remove-store.service.ts'
import { connectStore, rotateSecret } from '../../server/stores/stores.service.ts'
import { codeOf } from '../../server/test/testkit/authenticator.ts'
import { drainExports } from '../../server/test/testkit/export-world.ts'
import { OFFER } from '../../server/test/testkit/listings.ts'
import { cyclesOf, type Marketplace, type Shop } from '../../server/test/testkit/marketplace.ts'
import { orderBody } from '../../server/test/testkit/orders.ts'
import { HOUR, MINUTE } from '../../server/test/testkit/testbed.ts'
import { login, register } from '../../server/users/credentials.service.ts'
import { updateProfile } from '../../server/users/profile.service.ts'
import { confirmTotp, startTotp } from '../../server/users/second-factor.service.ts'
import { createAdmin, reinstateUser, suspendUser } from '../../server/users/users.service.ts'
import { createEndpoint } from '../../server/webhooks/endpoints.service.ts'

/** The password of every account in the fixture databases. */
export const PASSWORD = 'fixture-databases-2026'

export const IBANS = {
  ayesha: 'PK36SCBL0000001123456702',
  bilal: 'PK24SCBL0000001171495101',
  other: 'PK48MEZN0002010100987654',
}

/** A merchant with a store; the webhook secret is `secret of DOMAIN`. */
export interface Merchant extends Shop {
  email: string
}

/** What people, the schedule and the processor do in the market, each through the service that does it. */
export class MarketActions {
  readonly #market: Marketplace

  constructor(market: Marketplace) {
    this.#market = market
  }

  get #platform() {
    return this.#market.platform
  }

  async admin(email: string) {
    const admin = await createAdmin(this.#platform, email, PASSWORD, 'Operator')
    const second = await createAdmin(this.#platform, `second.${email}`, PASSWORD, 'Second operator')
    const { secret } = await startTotp(this.#platform, second)
    await confirmTotp(this.#platform, second.id, codeOf(secret, this.#platform.clock), second.id)
    return { userId: admin.id }
  }

  async register(name: string, role: 'merchant' | 'creator'): Promise<Actor> {
    const registration = { email: `${name}@fixture.example`, password: PASSWORD, role, displayName: name }
    const { profile } = await register(this.#platform, registration)
    return { userId: profile.user.id, role, sessionId: this.#platform.ids.next() }
  }

  async login(name: string): Promise<void> {
    await login(this.#platform, `${name}@fixture.example`, PASSWORD)
  }

  async merchant(name: string): Promise<Merchant> {
    const actor = await this.register(name, 'merchant')
    const shop_domain = `${name}.myshopify.com`
    const { id } = await connectStore(this.#platform, actor.userId, {
      shop_domain,
      webhook_secret: `secret of ${shop_domain}`,
    })
    return { actor, merchantId: actor.userId, storeId: id, email: `${name}@fixture.example` }
  }

  async creator(name: string, iban: string | null): Promise<Actor> {
    const actor = await this.register(name, 'creator')
    if (iban) {
      const destination = { iban, account_title: name.toUpperCase() }
      await updateProfile(this.#platform, actor.userId, { destination })
    }
    return actor
  }

  /** A merchant names the account that a processor may request payments from. */
  async billingAccount({ merchantId }: Shop): Promise<void> {
    await updateProfile(this.#platform, merchantId, { billingAccount: { iban: IBANS.other } })
  }

  /** A secret with a former one, a store that its merchant removed, and one that an operator released. */
  async stores(shop: Merchant): Promise<void> {
    const connect = (shop_domain: string) =>
      connectStore(this.#platform, shop.merchantId, {
        shop_domain,
        webhook_secret: `secret of ${shop_domain}`,
      })
    const former = await connect('kurta-old.myshopify.com')
    await removeStore(this.#platform, shop.merchantId, former.id)
    await connect('not-ours.myshopify.com')
    await releaseClaim(this.#platform, {
      domain: 'not-ours.myshopify.com',
      merchantId: shop.merchantId,
      actor: OPERATOR,
      reason: 'belongs to another merchant',
    })
    const outlet = await connect('kurta-outlet.myshopify.com')
    await rotateSecret(this.#platform, shop.merchantId, outlet.id, {
      secret: 'second secret of kurta-outlet',
    })
  }

  async link(
    shop: Shop,
    creator: Actor,
    fields: Partial<OfferFields>,
    adminId?: string,
  ): Promise<LinkRecord> {
    const { id } = await createOffer(this.#platform, shop.merchantId, { ...OFFER, ...fields })
    if (adminId) {
      await vetOffer(this.#platform, { offerId: id, actor: adminId, decision: 'approve', reason: 'agreed' })
    }
    await setOfferStatus(this.#platform, shop.merchantId, id, 'live')
    const message = { message: 'I review clothes.', promotion_url: 'https://example.com/reviews' }
    const application = await applyToOffer(this.#platform, creator.userId, id, message)
    const answer = { decision: 'approve', reason: null } as const
    const { link } = await decideOnApplication(this.#platform, shop.merchantId, application.id, answer)
    if (!link) throw new Error('the approval made no link')
    return link
  }

  async coupons(shop: Shop, { slug }: LinkRecord): Promise<void> {
    for (const code of ['AYESHA5', 'AYESHA10'])
      await setCoupon(this.#platform, { slug, actor: shop.merchantId, code })
  }

  async webhookEndpoint({ actor }: Shop): Promise<void> {
    const endpoint = { url: 'https://kurta.example.com/hooks', events: ['sale.accepted'], description: '' }
    await createEndpoint(this.#platform, actor, endpoint)
  }

  async turnMailOff({ userId, role }: Actor): Promise<void> {
    await updateNotifications(this.#platform, { userId, role }, { email: { 'payout.paid': false } })
  }

  /** Leaves the webhook deliveries of all events to be sent. */
  async distributeEvents(): Promise<void> {
    while ((await distributeEvents(this.#platform, CHANNELS)) > 0);
  }

  async offersInOtherStates(shop: Shop, creator: Actor, adminId: string): Promise<void> {
    const make = async (title: string, statuses: ('live' | 'paused' | 'ended')[], rate = 1000) => {
      const fields = { ...OFFER, title, commission_rate: rate }
      const { id } = await createOffer(this.#platform, shop.merchantId, fields)
      for (const status of statuses) await setOfferStatus(this.#platform, shop.merchantId, id, status)
      return id
    }
    const apply = (offerId: string) =>
      applyToOffer(this.#platform, creator.userId, offerId, { message: null, promotion_url: null })
    await make('Draft', [])
    await make('Paused', ['live', 'paused'])
    await make('Ended', ['live', 'ended'])
    await make('Waits for vetting', [], 4000)
    const rejected = await make('Vetting rejected', [], 5000)
    const vetting = { offerId: rejected, actor: adminId, reason: 'too high' }
    await vetOffer(this.#platform, { ...vetting, decision: 'reject' })
    const open = await make('Open', ['live'])
    const { id } = await apply(open)
    const answer = { decision: 'reject', reason: 'not our customers' } as const
    await decideOnApplication(this.#platform, shop.merchantId, id, answer)
    await apply(open)
  }

  async sell(shop: Shop, link: LinkRecord, price: number): Promise<void> {
    await this.#market.order(shop, link, price)
    await this.#market.after(MINUTE)
  }

  async clicksOfEveryKind(link: LinkRecord): Promise<void> {
    const clicks = createClickRecorder(this.#platform)
    const click = (kind: 'visit' | 'bot' | 'prefetch' | 'head', tracked: boolean) =>
      clicks.record({
        id: this.#platform.ids.next(),
        linkId: link.id,
        tracked,
        kind,
        createdAt: this.#market.clock.now(),
        address: '203.0.113.7',
        agent: 'Mozilla/5.0 (Linux; Android 14)',
      })
    for (const kind of ['visit', 'bot', 'prefetch', 'head'] as const) {
      await click(kind, true)
      await click(kind, false)
    }
    await click('visit', true)
    await clicks.idle()
    this.#market.clock.pass(MINUTE)
    await rollUpClicks(this.#platform)
  }

  async ordersThatAreNotAccepted(shop: Shop, link: LinkRecord, creator: Actor): Promise<void> {
    const { clock } = this.#market
    const { email } = await this.#platform.database.reader
      .selectFrom('users')
      .select('email')
      .where('id', '=', creator.userId)
      .executeTakeFirstOrThrow()
    const price = 100_000
    const now = () => ({ price, createdAt: clock.now() })
    const deliver = (body: string, more = {}) => this.#market.deliver(shop, body, more)
    await this.#market.order(shop, link, price, { email })
    await this.#market.order(shop, link, price, { financialStatus: 'pending' })
    await deliver(orderBody(now()))
    await deliver(orderBody({ ...now(), click: this.#platform.ids.next() }))
    const click = await this.#market.click(link)
    await deliver(orderBody({ ...now(), click }).replace('"test":false', '"test":true'))
    await deliver(orderBody({ ...now(), click }).replace('"currency":"PKR"', '"currency":"USD"'))
    await deliver(orderBody({ price, click, createdAt: clock.now() - HOUR }))
    const untracked = await this.#market.click(link, false)
    await deliver(orderBody({ ...now(), click: untracked }))
    await deliver('{"id":1}')
    await deliver(orderBody(now()), { topic: 'orders/create' })
    const twice = { deliveryId: 'delivery-that-comes-twice' }
    await deliver(orderBody(now()), twice)
    await deliver(orderBody(now()), twice)
    await this.#market.processorSays('invoice.viewed', { invoice_id: 'inv_1' })
    await this.#market.drainUntilIdle()
  }

  /** An order that is reported unpaid and paid an hour later: its sale is decided twice. */
  async sellUnpaidFirst(shop: Shop, link: LinkRecord, price: number): Promise<void> {
    const click = await this.#market.click(link)
    const createdAt = this.#market.clock.now()
    const order = { id: '6000000000001', name: '#9001', price, click, createdAt }
    await this.#market.deliver(shop, orderBody({ ...order, financialStatus: 'pending' }))
    await this.#market.drainUntilIdle()
    this.#market.clock.pass(HOUR)
    await this.#market.deliver(shop, orderBody(order))
    await this.#market.drainUntilIdle()
  }

  /** A sale whose order shows the host that the offers lead to. */
  async sellOnOwnHost(shop: Shop, link: LinkRecord, price: number): Promise<void> {
    const click = await this.#market.click(link)
    const order = JSON.parse(orderBody({ price, click, createdAt: this.#market.clock.now() }))
    const order_status_url = `${new URL(OFFER.product_url).origin}/62/orders/1/authenticate`
    await this.#market.deliver(shop, JSON.stringify({ ...order, order_status_url }))
    await this.#market.after(MINUTE)
  }

  /** A sale from a delivery that an operator sends as the store, and then a second time. */
  async sellByReplay(shop: Shop, link: LinkRecord, price: number): Promise<void> {
    const click = await this.#market.click(link)
    const body = orderBody({ price, click, createdAt: this.#market.clock.now() })
    const deliveryId = 'delivery-of-an-operator'
    for (const fixture of ['order', 'recorded event']) {
      await recordOperatorDelivery(this.#platform, {
        scope: shop.storeId,
        delivery_id: deliveryId,
        body_hash: createHash('sha256').update(body).digest('hex'),
        fixture,
        url: 'http://127.0.0.1:3000',
      })
      await this.#market.deliver(shop, body, { deliveryId })
      await this.#market.after(MINUTE)
    }
  }

  async grantCredit(shop: Shop, reference: string, amount: number): Promise<void> {
    const grant = {
      merchantId: shop.merchantId,
      amount,
      reference,
      reason: 'parcel was lost',
      actor: OPERATOR,
    }
    await grantCredit(this.#platform, grant)
  }

  async reissueRefused(): Promise<void> {
    const refused = await this.#platform.database.reader
      .selectFrom('processor_attempts')
      .select('subject_id')
      .where('kind', '=', 'invoice')
      .where('state', '=', 'refused')
      .execute()
    for (const { subject_id: cycleId } of refused) {
      const reissue = { cycleId, actor: OPERATOR, reason: 'the processor knows the merchant now' }
      await retryInvoice(this.#platform, this.#market.processor, reissue)
    }
    await this.#market.drainUntilIdle()
  }

  async pay(shop: Shop): Promise<void> {
    for (const { id, state } of await cyclesOf(this.#platform, shop.merchantId)) {
      if (state !== 'closed') continue
      const held = this.#market.processor.invoices.find(({ reference }) => reference === id)
      if (held) held.status = 'paid'
      await this.#market.confirmPayment(id)
    }
    await this.#market.after(MINUTE)
  }

  async payOut(actor?: string): Promise<void> {
    await this.scheduled('payouts', async () => {
      const outcomes = await runPayouts(this.#platform, this.#market.processor, actor ? { actor } : {})
      return { payouts: outcomes.filter((outcome) => outcome.kind === 'paid_out').length }
    })
    await this.#market.drainUntilIdle()
  }

  async settle(creator: Actor, verdict: 'confirmed' | 'failed'): Promise<void> {
    const submitted = await this.#platform.database.reader
      .selectFrom('payouts')
      .select('id')
      .where('creator_id', '=', creator.userId)
      .where('state', '=', 'submitted')
      .execute()
    if (submitted.length === 0) throw new Error('no payout to settle')
    for (const { id } of submitted) await this.#market.settlePayout(id, verdict)
    await this.#market.after(MINUTE)
  }

  async replaceDestination(creator: Actor): Promise<void> {
    await updateProfile(this.#platform, creator.userId, {
      destination: { iban: IBANS.other, account_title: 'BILAL' },
      currentPassword: PASSWORD,
    })
  }

  async retryRefusedPayouts(): Promise<void> {
    const refused = await this.#platform.database.reader
      .selectFrom('processor_attempts')
      .select('subject_id')
      .where('kind', '=', 'payout')
      .where('state', '=', 'refused')
      .execute()
    if (refused.length === 0) throw new Error('no payout was refused')
    for (const { subject_id: payoutId } of refused) {
      const retry = { payoutId, actor: OPERATOR, reason: 'a new account' }
      await retryPayout(this.#platform, this.#market.processor, retry)
    }
    await this.#market.drainUntilIdle()
  }

  async creditRequest(shop: Shop): Promise<void> {
    const { id } = await this.#platform.database.reader
      .selectFrom('sales')
      .select('id')
      .where('merchant_id', '=', shop.merchantId)
      .where('acceptance_status', '=', 'accepted')
      .orderBy('id')
      .executeTakeFirstOrThrow()
    await requestCredit(this.#platform, shop.merchantId, { saleId: id, amount: 10_000, reason: 'returned' })
  }

  /** The processor's records differ from ours in one invoice, which raises a flag. */
  async reconcileDifferences(): Promise<void> {
    const paid = this.#market.processor.invoices.find(({ status }) => status === 'paid')
    if (paid) paid.status = 'open'
    await this.scheduled('reconciliation', async () => {
      const { compared, complete } = await reconcile(this.#platform, this.#market.processor)
      return { compared, complete }
    })
  }

  async exports(merchant: Actor, creator: Actor): Promise<void> {
    const period = { from: null, to: null }
    const start = ({ userId, role }: Actor, resource: 'sales' | 'payouts', format: 'csv' | 'ndjson') =>
      startExport(this.#platform, { userId, role }, { resource, format, ...period })
    await start(merchant, 'sales', 'csv')
    await start(creator, 'payouts', 'ndjson')
    await drainExports(this.#platform)
  }

  async suspensions(shop: Shop, creator: Actor, adminId: string): Promise<void> {
    await suspendUser(this.#platform, { userId: creator.userId, actor: adminId, reason: 'asked by phone' })
    await reinstateUser(this.#platform, { userId: creator.userId, actor: adminId, reason: 'was a mistake' })
    await suspendUser(this.#platform, { userId: shop.merchantId, actor: OPERATOR, reason: 'does not pay' })
  }

  async watch(): Promise<void> {
    this.#market.clock.pass(MINUTE)
    await rollUpClicks(this.#platform)
    while ((await watchMarketplace(this.#platform)) > 0);
  }

  async resolveOneFlag(adminId: string): Promise<void> {
    const { id } = await this.#platform.database.reader
      .selectFrom('flags')
      .select('id')
      .where('status', '=', 'open')
      .orderBy('id')
      .executeTakeFirstOrThrow()
    await resolveFlag(this.#platform, { flagId: id, actor: adminId, note: 'checked by phone' })
  }

  async seal(): Promise<void> {
    await this.scheduled('seals', async () => {
      const { seal, moved } = await sealLedger(this.#platform)
      return { ledgers: moved, digest: seal?.digest ?? null }
    })
  }

  async scheduled(name: string, run: () => Promise<Record<string, unknown>>): Promise<void> {
    await noteStarted(this.#platform, name)
    await noteFinished(this.#platform, name, await run())
  }
}
