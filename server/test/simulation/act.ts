import { closeCycles, creditable, grantCredit } from '../oracle/billing.ts'
import { rupees } from '../oracle/exact.ts'
import {
  addDestination,
  changeOffer,
  connectAgain,
  removeStore,
  rotateSecret,
  setCoupon,
  setOfferStatus,
  setSuspended,
} from '../oracle/marketplace.ts'
import { resolveFailures, runPayouts } from '../oracle/payouts.ts'
import { expire } from '../oracle/pending.ts'
import { known } from '../oracle/state.ts'
import { agree, PENDING_DAYS, type Scene, tell, termsOf } from './scene.ts'
import { sell } from './sell.ts'
import { sayAllSettled, sayPaid, saySettled, sayStray } from './speak.ts'
import type { Action } from './story.ts'
import { receiveDue, work } from './workers.ts'
import { linkName, namesOf, offerNames, pick, storeNames } from './world.ts'

type Of<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>

const ACTS: { [Kind in Action['kind']]: (scene: Scene, action: Of<Kind>) => void | Promise<void> } = {
  sale: sell,
  terms: changeTerms,
  status: changeStatus,
  coupon: giveCoupon,
  suspend,
  reinstate: suspend,
  credit: grant,
  close,
  'run payouts': pay,
  'settle all': sayAllSettled,
  'pay day': payDay,
  payment: sayPaid,
  payout: saySettled,
  stray: sayStray,
  'look-ups': turnLookups,
  destination: giveDestination,
  resolve,
  secret: changeStore,
  'remove store': changeStore,
  'connect store': changeStore,
}

/** Does one thing to the model and to the services, and compares what they answer. */
export async function act(scene: Scene, action: Action): Promise<void> {
  await (ACTS[action.kind] as (scene: Scene, action: Action) => void | Promise<void>)(scene, action)
}

function merchantOf(scene: Scene, n: number): string {
  return pick(namesOf(scene.story).merchants, n)
}

function creatorOf(scene: Scene, n: number): string {
  return pick(namesOf(scene.story).creators, n)
}

function offerOf(scene: Scene, action: { merchant: number; offer: number }) {
  const merchant = merchantOf(scene, action.merchant)
  return { merchant, offer: pick(offerNames(scene.story, merchant), action.offer) }
}

function changeTerms(scene: Scene, action: Of<'terms'>): Promise<void> {
  const { merchant, offer } = offerOf(scene, action)
  const terms = termsOf(action.terms)
  const changing = scene.services.changeOffer(offer, merchant, terms)
  const words = `${offer} is changed to ${JSON.stringify(terms)}`
  return agree(scene, words, changeOffer(scene.model, offer, terms), changing)
}

function changeStatus(scene: Scene, action: Of<'status'>): Promise<void> {
  const { merchant, offer } = offerOf(scene, action)
  const moved = setOfferStatus(scene.model, offer, action.to, scene.clock.now())
  const moving = scene.services.setOfferStatus(offer, merchant, action.to)
  return agree(scene, `${offer} is set to ${action.to}`, moved, moving)
}

/** Of a link that is there. */
async function giveCoupon(scene: Scene, action: Of<'coupon'>): Promise<void> {
  const { merchant, offer } = offerOf(scene, action)
  const link = scene.model.links.get(linkName(creatorOf(scene, action.creator), offer))
  if (!link) return
  const given = setCoupon(scene.model, link, action.code, scene.clock.now())
  const giving = scene.services.setCoupon(link.name, merchant, action.code)
  await agree(scene, `${link.name} gets the coupon code ${action.code}`, given, giving)
}

async function suspend(scene: Scene, action: Of<'suspend' | 'reinstate'>): Promise<void> {
  const who = action.role === 'merchant' ? merchantOf(scene, action.who) : creatorOf(scene, action.who)
  tell(scene, `${who} is ${action.kind}ed`)
  setSuspended(scene.model, who, action.kind === 'suspend')
  await scene.services.setSuspended(who, action.kind === 'suspend')
}

async function grant(scene: Scene, action: Of<'credit'>): Promise<void> {
  const { model } = scene
  const merchant = merchantOf(scene, action.merchant)
  const most = creditable(model, merchant)
  const amount = { all: most, 'too much': most + 1, half: Math.floor(most / 2), 'a paisa': 1 }[action.size]
  const earlier = model.credits.at(-1)
  const fresh = { merchant, amount, reference: `credit ${scene.next()}` }
  const again = earlier && action.reference !== 'new'
  const wanted = again
    ? { ...earlier, amount: earlier.amount + (action.reference === 'taken' ? 1 : 0) }
    : fresh
  const outcome = grantCredit(model, wanted)
  const words = `${wanted.reference} of ${rupees(wanted.amount)} for ${wanted.merchant}`
  await agree(scene, words, outcome, scene.services.grantCredit(wanted))
}

/** The scheduled close; or an operator's, ahead of time, of all that is open. */
async function close(scene: Scene, action: Of<'close'>): Promise<void> {
  const now = scene.clock.now()
  const ends = scene.model.cycles.filter((cycle) => cycle.state === 'open').map((cycle) => cycle.end)
  const asOf = action.ahead ? Math.max(now, ...ends) : null
  tell(scene, asOf === null ? 'the schedule closes cycles' : 'an operator closes all cycles ahead of time')
  // The services first, and what is on its way before them: the workers may not have got round to it.
  await scene.services.flush()
  await scene.services.closeCycles(asOf)
  closeCycles(scene.model, asOf ?? now, now)
  await scene.services.expirePendingOrders()
  expire(scene.model, PENDING_DAYS, now)
}

/** What takes a month otherwise, in one go. */
async function payDay(scene: Scene): Promise<void> {
  await close(scene, { kind: 'close', ahead: true })
  await work(scene, 500)
  await sayAllSettled(scene, { what: 'invoices', payouts: 'confirmed' })
  await receiveDue(scene)
  await work(scene, 500)
  await pay(scene)
}

async function pay(scene: Scene): Promise<void> {
  tell(scene, 'creators are paid by the schedule')
  await scene.services.runPayouts()
  runPayouts(scene.model, scene.clock.now())
}

async function turnLookups(scene: Scene, { down }: Of<'look-ups'>): Promise<void> {
  tell(scene, `the processor's look-ups are ${down ? 'down' : 'up'}`)
  scene.model.lookupsDown = down
  scene.services.processor.lookupsFail = down
}

async function giveDestination(scene: Scene, action: Of<'destination'>): Promise<void> {
  const creator = creatorOf(scene, action.creator)
  tell(scene, `${creator} gives a new account`)
  addDestination(scene.model, creator, scene.clock.now())
  await scene.services.addDestination(creator)
}

async function resolve(scene: Scene, action: Of<'resolve'>): Promise<void> {
  const creator = creatorOf(scene, action.creator)
  const resolved = resolveFailures(scene.model, creator, scene.clock.now())
  const resolving = scene.services.resolveFailures(creator)
  await agree(scene, `a person has looked at ${creator}'s failed payouts`, resolved, resolving)
}

async function changeStore(
  scene: Scene,
  action: Of<'secret' | 'remove store' | 'connect store'>,
): Promise<void> {
  const { model, services } = scene
  const merchant = merchantOf(scene, action.merchant)
  const name = pick(storeNames(scene.story, merchant), action.store)
  const { inUse } = known(model.stores, name)
  if (inUse === (action.kind === 'connect store')) return
  tell(scene, `${name}: ${action.kind}`)
  if (action.kind === 'remove store') {
    removeStore(model, name, scene.clock.now())
    return services.removeStore(name, merchant)
  }
  const secret = `secret of ${name}, ${scene.next()}`
  scene.secrets.set(name, secret)
  if (action.kind === 'connect store') {
    connectAgain(model, name, secret)
    return services.connectStore(name, merchant, secret)
  }
  rotateSecret(model, name, secret, scene.clock.now())
  return services.rotateSecret(name, merchant, secret)
}
