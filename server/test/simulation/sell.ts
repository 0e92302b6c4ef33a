import { DAY, MINUTE } from '../oracle/calendar.ts'
import { receiveFromStore, type StoreDelivery } from '../oracle/inbox.ts'
import { addClick, approve, visitOf } from '../oracle/marketplace.ts'
import { known, type Link } from '../oracle/state.ts'
import { mustAgree } from './difference.ts'
import { type OrderFacts, orderBody } from './order-body.ts'
import { type Scene, send, tell } from './scene.ts'
import type { DeliveryPlan, OrderPlan, SaleAction } from './story.ts'
import { linkName, namesOf, offerNames, pick, storeNames } from './world.ts'

const UNKNOWN_CLICK = '01900000-0000-7000-8000-0000deadbeef'

/** A visit, an order that comes of it, and its deliveries on their way. */
export async function sell(scene: Scene, action: SaleAction): Promise<void> {
  const { merchants, creators } = namesOf(scene.story)
  const merchant = pick(merchants, action.merchant)
  const creator = pick(creators, action.creator)
  const link = await linkOf(scene, pick(offerNames(scene.story, merchant), action.offer), merchant, creator)
  const clickId = link && (await visit(scene, link))
  const now = scene.clock.now()
  const placedAt =
    now + action.gap.ms + (action.gap.from === 'window' ? (link?.terms.windowDays ?? 0) * DAY : 0)
  const reporter =
    action.store.of === 'merchant' ? merchant : pick(merchants, merchants.indexOf(merchant) + 1)
  const store = pick(storeNames(scene.story, reporter), action.store.index)
  const number = 1000 + scene.next()
  const facts = {
    id: action.order.bigId ? String(820_982_911_946_150_000n + BigInt(number)) : String(number),
    name: `#${number}`,
    placedAt,
    updatedAt: placedAt,
    reference: referenceOf(action.order, clickId),
    creatorEmail: known(scene.model.people, creator).email,
  }
  const order = JSON.stringify({ minutesLater: (placedAt - now) / MINUTE, ...action.order })
  tell(scene, `${link?.name ?? 'no link'} is followed; order ${facts.id} of ${store}: ${order}`)
  const bodyOf = (body: DeliveryPlan['body']) =>
    orderBody(reportedPlan(action.order, body), reportedFacts(facts, body))
  for (const [index, plan] of action.deliveries.entries()) {
    const deliveryId = `order-${number}${plan.id === 'fresh' ? `-again-${index}` : ''}`
    const words = `order ${facts.id} of ${store} arrives as ${deliveryId}, body: ${plan.body}`
    send(scene, Math.max(now, placedAt) + plan.delay, () => {
      const secret = secretFor(scene, store, plan.secret)
      return arrive(scene, words, { store, deliveryId, topic: plan.topic, body: bodyOf(plan.body), secret })
    })
  }
}

/** A creator's link to an offer: applied for and approved at its first use, with the terms of that moment. */
async function linkOf(scene: Scene, offer: string, merchant: string, creator: string): Promise<Link | null> {
  const name = linkName(creator, offer)
  const there = scene.model.links.get(name)
  if (there) return there
  const link = approve(scene.model, name, offer, creator)
  const made = await scene.services.approve(name, offer, merchant, creator)
  mustAgree(`${merchant} approves ${creator} for ${offer}`, link !== null, made)
  if (link) tell(scene, `${merchant} approves ${creator} for ${offer}: ${JSON.stringify(link.terms)}`)
  return link
}

/** The click's id; `null` when the visitor got none along. */
async function visit(scene: Scene, link: Link): Promise<string | null> {
  const { id, state } = await scene.services.visit(link)
  mustAgree(`a visit of ${link.name}`, visitOf(scene.model, link), state)
  if (state === 'gone') return null
  addClick(scene.model, { id, link, at: scene.clock.now(), tracked: state === 'tracked' })
  return id
}

function referenceOf(plan: OrderPlan, clickId: string | null): string {
  if (plan.reference.what === 'words') return 'another shop & co'
  if (plan.reference.what === 'unknown' || clickId === null) return UNKNOWN_CLICK
  return plan.reference.what === 'upper case' ? clickId.toUpperCase() : clickId
}

/** The order as a delivery reports it. */
function reportedPlan(plan: OrderPlan, body: DeliveryPlan['body']): OrderPlan {
  if (body === 'unpaid, cancelled') return { ...plan, status: 'voided' }
  if (body === 'unpaid, cancelled, bare')
    return { ...plan, status: 'voided', codes: [], reference: { ...plan.reference, place: 'none' } }
  if (body === 'paid back') return { ...plan, status: 'refunded' }
  if (body === 'unpaid') return { ...plan, status: 'pending' }
  if (body === 'unpaid, other amounts') return oneMore({ ...plan, status: 'pending' })
  const paid = body.startsWith('paid') ? { ...plan, status: 'paid' as const } : plan
  return body === 'other' || body === 'paid, other amounts' ? oneMore(paid) : paid
}

function reportedFacts(facts: OrderFacts, body: DeliveryPlan['body']): OrderFacts {
  if (body === 'unpaid, other amounts') return { ...facts, updatedAt: facts.placedAt + MINUTE }
  if (body.startsWith('unpaid, cancelled')) return { ...facts, updatedAt: facts.placedAt + 2 * MINUTE }
  if (body.endsWith('other click')) return { ...facts, reference: UNKNOWN_CLICK }
  return body === 'other date' ? { ...facts, placedAt: facts.placedAt - MINUTE } : facts
}

/** Another body for the same order. */
function oneMore(plan: OrderPlan): OrderPlan {
  const [first, ...rest] = plan.lines
  return first ? { ...plan, lines: [{ ...first, quantity: first.quantity + 1 }, ...rest] } : plan
}

async function arrive(scene: Scene, words: string, delivery: StoreDelivery): Promise<void> {
  const expected = receiveFromStore(scene.model, delivery, scene.clock.now())
  tell(scene, `${words}: ${expected}`)
  await scene.services.receiveFromStore(delivery, (receipt) => mustAgree(words, expected, receipt))
}

function secretFor(scene: Scene, store: string, which: DeliveryPlan['secret']): string {
  if (which === 'foreign') return 'another account'
  const secrets = known(scene.model.stores, store).secrets.map(({ secret }) => secret)
  const former = which === 'former' ? secrets.at(-2) : undefined
  return former ?? scene.secrets.get(store) ?? ''
}
