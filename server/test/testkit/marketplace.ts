import * as assert from 'uvu/assert'
import { formatMoney, type Paisa } from '../../../shared/money.ts'
import { closeDueCycles } from '../../billing/close-cycle.service.ts'
import { createClickRecorder } from '../../clicks/clicks.service.ts'
import { createInboxRecorder } from '../../inbox/intake.service.ts'
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
import type { TestDialect } from './databases.ts'
import { addLink, addLiveOffer, addMerchant, storeIdOf } from './listings.ts'
import { type OrderChanges, orderBody } from './orders.ts'
import { addUser } from './people.ts'
import { rowOf, rowsOf } from './rows.ts'
import { ScriptedProcessor } from './scripted-processor.ts'
import { openTestbed } from './testbed.ts'

const IBAN = 'PK36SCBL0000001123456702'

/** A merchant with a store. */
export interface Shop {
  actor: SessionActor
  merchantId: string
  storeId: string
}

/** A shop, a creator, and the creator's link to an offer of the shop. */
export interface Trade {
  shop: Shop
  creator: SessionActor
  link: LinkRecord
}

export type Marketplace = Awaited<ReturnType<typeof openMarketplace>>

/**
 * A whole marketplace below HTTP: services, inbox and worker over a fresh database, and a processor in memory. The watches go by the time
 * in ids, so a test of theirs needs ids of its own clock.
 */
export async function openMarketplace(
  dialect: TestDialect,
  settings: Record<string, string> = {},
  idsOf?: (clock: Clock) => Ids,
) {
  const bed = await openTestbed(dialect, settings)
  const { clock } = bed
  const platform = idsOf ? { ...bed.platform, ids: idsOf(clock) } : bed.platform
  const processor = new ScriptedProcessor()
  const clicks = createClickRecorder(platform)
  const inbox = createInboxRecorder(platform)
  const parts = { platform, processor, eventRules: GENERIC_PROCESSOR_EVENTS }
  const drain = () => drainUntilIdle(parts)
  const click = async (link: LinkRecord, tracked = true, subId: string | null = null) => {
    const id = platform.ids.next()
    await clicks.record({ id, linkId: link.id, tracked, kind: 'visit', subId, createdAt: clock.now() })
    return id
  }
  /** Puts what the shop's store sent into the inbox. */
  const deliver = (shop: Shop, body: string | Buffer, more: { deliveryId?: string; topic?: string } = {}) => {
    const { deliveryId = platform.ids.next(), topic = 'orders/paid' } = more
    return inbox.record({
      ...{ source: 'store', scope: shop.storeId, deliveryId, topic },
      rawBody: Buffer.from(body),
    })
  }
  /** A click, and an order of now that came from it, into the inbox; returns the body. */
  const order = async (shop: Shop, link: LinkRecord, price: Paisa, changes: Partial<OrderChanges> = {}) => {
    const body = orderBody({ price, click: await click(link), createdAt: clock.now(), ...changes })
    await deliver(shop, body)
    return body
  }
  /** Puts an event of a processor, in any form, into the inbox. */
  const processorSends = (body: object, deliveryId = platform.ids.next()) =>
    inbox.record({
      ...{ source: 'processor', scope: 'processor', deliveryId, topic: null },
      rawBody: Buffer.from(JSON.stringify(body)),
    })
  const processorSays = (type: string, data: Record<string, unknown>, deliveryId?: string) =>
    processorSends({ type, data }, deliveryId)
  /** The processor's confirmation of one payment, as it should be unless changed. */
  const confirmPayment = async (cycleId: string, changes: Record<string, unknown> = {}) => {
    const cycle = await cycleOf(platform, cycleId)
    return processorSays('billing.payment_confirmed', {
      ...{ invoice_id: cycle.processor_invoice_id, payment_reference: `pay_${cycleId}` },
      ...{ amount: formatMoney(cycle.amount_due), currency: 'PKR', ...changes },
    })
  }
  /** The processor's word on one payout, as it should be unless changed. */
  const settlePayout = async (
    payoutId: string,
    word: 'confirmed' | 'failed',
    changes: Record<string, unknown> = {},
  ) => {
    const payout = await payoutOf(platform, payoutId)
    const held = processor.payouts.find((item) => item.reference === payoutId)
    if (held) held.status = word === 'confirmed' ? 'paid' : 'failed'
    return processorSays(`payout.${word}`, {
      ...{ payout_id: payout.processor_payout_id ?? held?.id, reference: payoutId },
      ...{ amount: formatMoney(payout.amount), currency: 'PKR' },
      ...{ reason: 'returned by the bank', ...changes },
    })
  }
  /** The same, applied with all that is due. */
  const sell = async (...sold: Parameters<typeof order>) => {
    const body = await order(...sold)
    await drain()
    return body
  }
  const addShop = async (name?: string): Promise<Shop> => {
    const actor = await addMerchant(platform, name)
    return { actor, merchantId: actor.userId, storeId: await storeIdOf(platform, actor.userId) }
  }
  const addCreator = async (name?: string, destination = true) => {
    const creator = await addUser(platform, 'creator', name)
    if (destination) await giveDestination(platform, creator.userId)
    return creator
  }
  /** A live offer of the shop and this creator's approved link to it; by default 12.5 % and 30 days. */
  const linkTo = async (shop: Shop, creator: Actor, terms: Partial<OfferFields> = {}) => {
    const offer = await addLiveOffer(platform, shop.actor, terms)
    return addLink(platform, shop.actor, creator, offer.id)
  }
  return {
    ...{ bed, platform, clock, processor, addShop, addCreator, addLink: linkTo },
    ...{ click, deliver, order, sell, processorSays, processorSends, confirmPayment, settlePayout },
    async addTrade(terms?: Partial<OfferFields>): Promise<Trade> {
      const [shop, creator] = [await addShop(), await addCreator()]
      return { shop, creator, link: await linkTo(shop, creator, terms) }
    },
    /** Makes the payouts that are due, and settles the last one if `word` says how; returns its id. */
    async payOut(word?: 'confirmed' | 'failed') {
      await runPayouts(platform, processor)
      await drain()
      const id = processor.payouts.at(-1)?.reference
      if (id === undefined) throw new Error('nothing was paid out')
      if (word) await settlePayout(id, word)
      await drain()
      return id
    },
    /** Sells, closes the shop's cycle as of its end, and has its payment confirmed: the commission is released. */
    async earn(shop: Shop, link: LinkRecord, price: Paisa) {
      await sell(shop, link, price)
      const cycleId = await closeOpenCycle(platform, shop)
      await drain()
      await confirmPayment(cycleId)
      await drain()
    },
    /** Applies all that is due now. */
    drainUntilIdle: drain,
    /** Passes `ms`, then applies all that is due. */
    async after(ms: number) {
      clock.pass(ms)
      await drain()
    },
    /** Fails with the breaches when an invariant does not hold. */
    verify: () => verify(platform),
    async close() {
      await Promise.all([clicks.idle(), inbox.idle()])
      await bed.close()
    },
  }
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
