import * as assert from 'uvu/assert'
import { formatMoney, type Paisa } from '../../../shared/money.ts'
import { closeDueCycles } from '../../billing/close-cycle.service.ts'
import { createClickRecorder } from '../../clicks/clicks.service.ts'
import { createInboxRecorder, type Receipt } from '../../inbox/intake.service.ts'
import { drainUntilIdle } from '../../jobs/worker.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import type { OfferFields } from '../../offers/offers.service.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import type { Actor, SessionActor } from '../../platform/api/procedure.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Platform } from '../../platform/platform.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../../processor/events.settings.ts'
import {
  addBillingAccount,
  addDestination,
  type BillingAccount,
} from '../../users/sealed-accounts.service.ts'
import { EVERYTHING } from '../../verification/scope.ts'
import { INVARIANTS, verifyBooks } from '../../verification/verify-books.ts'
import type { TestDatabaseOptions, TestDialect } from './databases.ts'
import { addLink, addLiveOffer, addMerchant, storeIdOf } from './listings.ts'
import { type OrderChanges, orderBody } from './orders.ts'
import { addUser } from './people.ts'
import { rowOf, rowsOf } from './rows.ts'
import { ScriptedProcessor } from './scripted-processor.ts'
import { type ManualClock, openTestbed, type Testbed } from './testbed.ts'

const IBAN = 'PK36SCBL0000001123456702'

/** A merchant with a store. */
export interface Shop {
  actor: SessionActor
  merchantId: string
  storeId: string
}

/** A whole marketplace below HTTP: services, inbox and worker over a fresh database, and a processor in memory. */
export interface Marketplace {
  bed: Testbed
  platform: Platform
  clock: ManualClock
  processor: ScriptedProcessor
  addShop(name?: string): Promise<Shop>
  /** With a payout destination unless `destination` is false. */
  addCreator(name?: string, destination?: boolean): Promise<SessionActor>
  /** A live offer of the shop and this creator's approved link to it; by default 12.5 % and 30 days. */
  addLink(shop: Shop, creator: Actor, terms?: Partial<OfferFields>): Promise<LinkRecord>
  click(link: LinkRecord, tracked?: boolean, subId?: string | null): Promise<string>
  /** Puts what the shop's store sent into the inbox. */
  deliver(shop: Shop, body: string | Buffer, more?: { deliveryId?: string; topic?: string }): Promise<Receipt>
  /** A click, and an order of now that came from it, into the inbox; answers the body. */
  order(shop: Shop, link: LinkRecord, price: Paisa, changes?: Partial<OrderChanges>): Promise<string>
  /** Puts one of the processor's events into the inbox. */
  processorSays(type: string, data: Record<string, unknown>, deliveryId?: string): Promise<Receipt>
  /** The same for a processor with events of another form. */
  processorSends(body: object, deliveryId?: string): Promise<Receipt>
  /** The processor's confirmation of one payment, as it should be unless changed. */
  confirmPayment(cycleId: string, changes?: Record<string, unknown>): Promise<Receipt>
  /** The processor's word on one payout, as it should be unless changed. */
  settlePayout(
    payoutId: string,
    word: 'confirmed' | 'failed',
    changes?: Record<string, unknown>,
  ): Promise<Receipt>
  /** Makes the payouts that are due, and settles the last one if `word` says how; answers its id. */
  payOut(word?: 'confirmed' | 'failed'): Promise<string>
  /** Sells, closes the shop's cycle as of its end, and has its payment confirmed: the commission is released. */
  earn(shop: Shop, link: LinkRecord, price: Paisa): Promise<void>
  /** Applies all that is due now. */
  drainUntilIdle(): Promise<void>
  /** Passes `ms`, then applies all that is due. */
  after(ms: number): Promise<void>
  /** Fails with the breaches when an invariant does not hold. */
  verify(): Promise<void>
  close(): Promise<void>
}

export async function openMarketplace(
  dialect: TestDialect,
  settings: Record<string, string> = {},
  /** The watches go by the time in ids, so a test of theirs needs ids of its own clock. */
  idsOf?: (clock: Clock) => Ids,
  options: TestDatabaseOptions = {},
): Promise<Marketplace> {
  const bed = await openTestbed(dialect, settings, options)
  const { clock } = bed
  const platform = idsOf ? { ...bed.platform, ids: idsOf(clock) } : bed.platform
  const processor = new ScriptedProcessor()
  const clicks = createClickRecorder(platform)
  const inbox = createInboxRecorder(platform)
  const parts = { platform, processor, eventRules: GENERIC_PROCESSOR_EVENTS }
  const market: Marketplace = {
    bed,
    platform,
    clock,
    processor,
    addShop: (name) => addShop(platform, name),
    addCreator: (name, destination = true) => addCreator(platform, name, destination),
    async addLink(shop, creator, terms = {}) {
      const offer = await addLiveOffer(platform, shop.actor, terms)
      return addLink(platform, shop.actor, creator, offer.id)
    },
    async click(link, tracked = true, subId = null) {
      const id = platform.ids.next()
      await clicks.record({ id, linkId: link.id, tracked, kind: 'visit', subId, createdAt: clock.now() })
      return id
    },
    deliver: (shop, body, more = {}) =>
      inbox.record({
        source: 'store',
        scope: shop.storeId,
        deliveryId: more.deliveryId ?? platform.ids.next(),
        topic: more.topic ?? 'orders/paid',
        rawBody: Buffer.from(body),
      }),
    async order(shop, link, price, changes = {}) {
      const click = await market.click(link)
      const body = orderBody({ price, click, createdAt: clock.now(), ...changes })
      await market.deliver(shop, body)
      return body
    },
    processorSays: (type, data, deliveryId) => market.processorSends({ type, data }, deliveryId),
    processorSends: (body, deliveryId = platform.ids.next()) =>
      inbox.record({
        source: 'processor',
        scope: 'processor',
        deliveryId,
        topic: null,
        rawBody: Buffer.from(JSON.stringify(body)),
      }),
    async confirmPayment(cycleId, changes = {}) {
      const cycle = await cycleOf(platform, cycleId)
      return market.processorSays('billing.payment_confirmed', {
        invoice_id: cycle.processor_invoice_id,
        payment_reference: `pay_${cycleId}`,
        amount: formatMoney(cycle.amount_due),
        currency: 'PKR',
        ...changes,
      })
    },
    async settlePayout(payoutId, word, changes = {}) {
      const payout = await payoutOf(platform, payoutId)
      const held = processor.payouts.find((item) => item.reference === payoutId)
      if (held) held.status = word === 'confirmed' ? 'paid' : 'failed'
      return market.processorSays(`payout.${word}`, {
        payout_id: payout.processor_payout_id ?? held?.id,
        reference: payoutId,
        amount: formatMoney(payout.amount),
        currency: 'PKR',
        reason: 'returned by the bank',
        ...changes,
      })
    },
    async payOut(word) {
      await runPayouts(platform, processor)
      await drainUntilIdle(parts)
      const id = processor.payouts.at(-1)?.reference
      if (id === undefined) throw new Error('nothing was paid out')
      if (word) await market.settlePayout(id, word)
      await drainUntilIdle(parts)
      return id
    },
    async earn(shop, link, price) {
      await market.order(shop, link, price)
      await drainUntilIdle(parts)
      const cycleId = await closeOpenCycle(platform, shop)
      await drainUntilIdle(parts)
      await market.confirmPayment(cycleId)
      await drainUntilIdle(parts)
    },
    drainUntilIdle: () => drainUntilIdle(parts),
    async after(ms) {
      clock.pass(ms)
      await drainUntilIdle(parts)
    },
    verify: () => verify(platform),
    async close() {
      await Promise.all([clicks.idle(), inbox.idle()])
      await bed.close()
    },
  }
  return market
}

async function addShop(platform: Platform, name?: string): Promise<Shop> {
  const actor = await addMerchant(platform, name)
  return { actor, merchantId: actor.userId, storeId: await storeIdOf(platform, actor.userId) }
}

async function addCreator(
  platform: Platform,
  name: string | undefined,
  destination: boolean,
): Promise<SessionActor> {
  const creator = await addUser(platform, 'creator', name)
  if (destination) await giveDestination(platform, creator.userId)
  return creator
}

export function giveDestination(platform: Platform, creatorId: string, iban = IBAN): Promise<void> {
  return platform.database.transaction((tx) =>
    addDestination(platform, tx, creatorId, { iban, account_title: 'A CREATOR' }),
  )
}

export function giveBillingAccount(
  platform: Platform,
  merchantId: string,
  account: BillingAccount = { iban: IBAN },
): Promise<void> {
  return platform.database.transaction((tx) => addBillingAccount(platform, tx, merchantId, account))
}

export const cycleOf = (platform: Platform, id: string) => rowOf(platform, 'billing_cycles', { id })

export const payoutOf = (platform: Platform, id: string) => rowOf(platform, 'payouts', { id })

/** A merchant's cycles, oldest first. */
export const cyclesOf = (platform: Platform, merchant_id: string) =>
  rowsOf(platform, 'billing_cycles', { merchant_id }, 'period_start')

/** The shop's open cycle. Throws if no sale has opened one. */
export async function openCycleOf(platform: Platform, { merchantId }: Pick<Shop, 'merchantId'>) {
  const open = (await cyclesOf(platform, merchantId)).find(({ state }) => state === 'open')
  if (!open) throw new Error('nothing was accepted')
  return open
}

/** Closes the shop's open cycle as of its end; answers its id. */
export async function closeOpenCycle(platform: Platform, shop: Pick<Shop, 'merchantId'>): Promise<string> {
  const { id, period_end } = await openCycleOf(platform, shop)
  await closeDueCycles(platform, { merchantId: shop.merchantId, asOf: period_end })
  return id
}

export const attemptsOf = (platform: Platform, subject_id: string) =>
  rowsOf(platform, 'processor_attempts', { subject_id })

/** Every event, in the order of arrival. */
export const eventsOf = (platform: Platform) => rowsOf(platform, 'inbound_events')

/** Kind and subject of each open flag, as `kind subject`, sorted. */
export async function openFlagsOf(platform: Platform): Promise<string[]> {
  const flags = await rowsOf(platform, 'flags', { status: 'open' })
  return flags.map((flag) => `${flag.kind} ${flag.subject_id}`).sort()
}

/** The rows that break an invariant. */
export async function brokenRows({ database, keys }: Platform, name: string): Promise<string[]> {
  const invariant = INVARIANTS.find((one) => one.name === name)
  if (!invariant) throw new Error(`there is no invariant ${name}`)
  return (await invariant.breaches(database.reader, keys, EVERYTHING)).map(({ subject }) => subject)
}

/** The invariants that do not hold, each with the rows that break it. */
export async function brokenInvariants(platform: Platform): Promise<Record<string, string[]>> {
  const broken = (await verifyBooks(platform)).filter(({ breaches }) => breaches.length > 0)
  return Object.fromEntries(
    broken.map(({ name, breaches }) => [name, breaches.map(({ subject }) => subject)]),
  )
}

/** Every row that breaks an invariant, as `invariant: row: what is wrong`. */
export async function breachesIn(platform: Platform): Promise<string[]> {
  const results = await verifyBooks(platform)
  return results.flatMap(({ name, breaches }) =>
    breaches.map(({ subject, detail }) => `${name}: ${subject}: ${detail}`),
  )
}

export async function verify(platform: Platform): Promise<void> {
  assert.equal(await breachesIn(platform), [])
}
