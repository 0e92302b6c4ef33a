import { cyclesOf } from '../oracle/billing.ts'
import { rupees } from '../oracle/exact.ts'
import { receiveFromProcessor } from '../oracle/inbox.ts'
import { payoutsOf } from '../oracle/payouts.ts'
import type { Call, Cycle, Payout, ProcessorWord } from '../oracle/state.ts'
import { Difference, mustAgree } from './difference.ts'
import { type Scene, send, tell } from './scene.ts'
import { processorId } from './services.ts'
import type { PaymentAction, PayoutAction, SettleAllAction, StrayAction, WordPlan } from './story.ts'
import { namesOf, pick } from './world.ts'

const RIGHT: WordPlan = { twist: 'right', deliveries: [{ delay: 0, id: 'first', signature: 'right' }] }
/** A well-formed payout or invoice id that does not exist. */
const NO_USERS_ID = '01900000-0000-7000-8000-00000000dead'

/** The processor confirms the payment of one of a merchant's latest cycles. */
export async function sayPaid(scene: Scene, action: PaymentAction): Promise<void> {
  const merchant = pick(namesOf(scene.story).merchants, action.merchant)
  const cycle = cyclesOf(scene.model, merchant).at(-1 - action.back)
  if (cycle) await confirmPayment(scene, cycle, action)
}

/** The processor confirms or fails one of a creator's latest payouts. */
export async function saySettled(scene: Scene, action: PayoutAction): Promise<void> {
  const creator = pick(namesOf(scene.story).creators, action.creator)
  const payout = payoutsOf(scene.model, creator).at(-1 - action.back)
  if (payout) await settle(scene, payout, action)
}

/** The processor is done with what it holds. */
export async function sayAllSettled(scene: Scene, action: Omit<SettleAllAction, 'kind'>): Promise<void> {
  const { what, payouts: word } = action
  for (const cycle of what === 'payouts' ? [] : scene.model.cycles) {
    if (cycle.state === 'closed' && isHeld(scene, cycle.name)) await confirmPayment(scene, cycle, RIGHT)
  }
  for (const payout of what === 'invoices' ? [] : scene.model.payouts) {
    if (payout.state === 'submitted') await settle(scene, payout, { ...RIGHT, word, honest: true })
  }
}

function isHeld(scene: Scene, subject: string): boolean {
  return scene.model.calls.some((call) => call.subject === subject && call.held !== null)
}

async function confirmPayment(scene: Scene, cycle: Cycle, { twist, deliveries }: WordPlan): Promise<void> {
  const amount = (cycle.due || 100) + (twist === 'other amount' ? 1 : 0)
  const said: ProcessorWord = {
    kind: 'payment_confirmed',
    cycle: twist === 'unknown' ? null : cycle.name,
    paymentReference: `payment of ${cycle.name}${twist === 'other reference' ? ', second' : ''}`,
    amount,
    currency: currencyOf(twist),
  }
  const data = {
    invoice_id: processorId('inv', twist === 'unknown' ? NO_USERS_ID : await idOf(scene, cycle.name)),
    payment_reference: said.paymentReference,
    ...(twist === 'broken' ? {} : { amount: rupees(amount) }),
    currency: said.currency,
  }
  if (twist === 'right') noteAtProcessor(scene, cycle.name, 'paid')
  const body = JSON.stringify({ type: 'billing.payment_confirmed', data })
  deliver(
    scene,
    { what: `payment of ${cycle.name}, ${twist}`, body, said: twist === 'broken' ? null : said },
    deliveries,
  )
}

async function settle(
  scene: Scene,
  payout: Payout,
  { twist, deliveries, word, honest }: WordPlan & { word: 'confirmed' | 'failed'; honest: boolean },
): Promise<void> {
  const reference = twist === 'unknown' ? NO_USERS_ID : await idOf(scene, payout.name)
  const amount = payout.amount + (twist === 'other amount' ? 1 : 0)
  const said: ProcessorWord = {
    kind: `payout_${word}`,
    payout: twist === 'unknown' ? null : payout.name,
    rightId: twist !== 'other reference',
    amount,
    currency: currencyOf(twist),
    reason: 'returned by the bank',
  }
  const data = {
    payout_id: `${processorId('po', reference)}${said.rightId ? '' : '-other'}`,
    reference,
    ...(twist === 'broken' ? {} : { amount: rupees(amount) }),
    currency: said.currency,
    reason: said.reason,
  }
  if (twist === 'right' && honest)
    noteAtProcessor(scene, payout.name, word === 'confirmed' ? 'paid' : 'failed')
  const what = `${payout.name} ${word}, ${twist}${honest ? '' : ', against its own record'}`
  const body = JSON.stringify({ type: `payout.${word}`, data })
  deliver(scene, { what, body, said: twist === 'broken' ? null : said }, deliveries)
}

function currencyOf(twist: WordPlan['twist']): string {
  return twist === 'other currency' ? 'USD' : 'PKR'
}

async function idOf(scene: Scene, name: string): Promise<string> {
  const id = await scene.services.ids.idOf(name)
  if (id === null) throw new Difference([`expected by the model: ${name} / the services have made none`])
  return id
}

/** Changes what the processor, asked, says of something that it holds. */
function noteAtProcessor(scene: Scene, subject: string, status: NonNullable<Call['held']>): void {
  const call = scene.model.calls.find((one) => one.subject === subject)
  if (!call || call.held === null) return
  call.held = status
  const { invoices, payouts } = scene.services.processor
  for (const held of [...invoices, ...payouts]) {
    if (scene.services.ids.knownName(held.reference) === subject) held.status = status
  }
}

/** Signed events about nothing that we know, or need to. */
export function sayStray(scene: Scene, { what }: StrayAction): void {
  const money = { amount: 100, currency: 'PKR' }
  const nowhere = { ...money, paymentReference: 'p', cycle: null }
  const data = { amount: '1.00', currency: 'PKR' }
  const [type, fields, said]: [string, object, ProcessorWord | null] = {
    'unknown invoice': [
      'billing.payment_confirmed',
      { ...data, invoice_id: processorId('inv', NO_USERS_ID), payment_reference: 'p' },
      { kind: 'payment_confirmed', ...nowhere },
    ],
    'unknown payout': [
      'payout.confirmed',
      { ...data, payout_id: processorId('po', NO_USERS_ID), reference: NO_USERS_ID },
      { kind: 'payout_confirmed', payout: null, rightId: true, ...money, reason: '' },
    ],
    'unknown type': ['invoice.viewed', {}, { kind: 'other', type: 'invoice.viewed' }],
    'no words': ['payout.failed', {}, null],
  }[what] as [string, object, ProcessorWord | null]
  deliver(
    scene,
    { what: `a stray event: ${what}`, body: JSON.stringify({ type, data: fields }), said },
    RIGHT.deliveries,
  )
}

interface Said {
  what: string
  body: string
  said: ProcessorWord | null
}

function deliver(scene: Scene, { what, body, said }: Said, deliveries: WordPlan['deliveries']): void {
  const number = scene.next()
  for (const [index, plan] of deliveries.entries()) {
    const deliveryId = `word-${number}${plan.id === 'fresh' ? `-again-${index}` : ''}`
    send(scene, scene.clock.now() + plan.delay, async () => {
      const now = scene.clock.now()
      const skew = { right: 0, forged: 0, early: -301_000, late: 301_000 }[plan.signature]
      const delivery = { deliveryId, body, said, signedAt: now + skew, forged: plan.signature === 'forged' }
      const expected = receiveFromProcessor(scene.model, delivery, now)
      const words = `the processor says as ${deliveryId}: ${what}: ${expected}`
      tell(scene, words)
      scene.services.receiveFromProcessor(delivery, (receipt) => mustAgree(words, expected, receipt))
    })
  }
}
