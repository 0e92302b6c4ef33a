import { type Closing, closeBooks, showVerification } from './closing.steps.ts'
import type { Demo } from './demo.ts'
import { closeCycle, failPayout, payInvoice, payOut } from './money.steps.ts'
import { applyToOffer, decideApplications, followLink, publishOffer, resolveLink } from './offer.steps.ts'
import { compareViews, makeDeliveries, sendAgain, sendOrders } from './orders.steps.ts'
import {
  connectStore,
  giveBillingAccount,
  type People,
  registerPeople,
  type Secrets,
  setDestination,
} from './people.steps.ts'
import { readStoryOrders } from './scenario.ts'
import type { StepReport } from './step-report.ts'

/** The steps of the story, in their order, with their titles. */
export const STEPS = {
  server: 'The server starts over an empty database',
  people: 'A merchant and two creators register',
  store: 'The merchant connects a store',
  destination: 'The first creator says where payouts go',
  offer: 'The merchant publishes an offer',
  applications: 'Both creators apply',
  decisions: 'The merchant approves one and rejects the other',
  link: 'Anyone can resolve the affiliate link',
  clicks: 'Four visitors follow it and land on the merchant’s product page',
  orders: 'The store reports orders, signed as Shopify signs them',
  repetitions: 'A redelivery, a replay and a forgery change nothing',
  views: 'Each account sees only its own sales',
  close: 'The billing cycle is closed',
  payment: 'The processor invoices the merchant and confirms the payment',
  'later-order': 'One more order comes in, for the next cycle',
  'failed-payout': 'The first payout fails, and its amount goes back',
  payout: 'The next payout arrives',
  statement: 'The closing statement, to be added up by hand',
  verification: 'The books are verified',
} as const

export type StepName = keyof typeof STEPS

interface Teller {
  step<Result>(name: StepName, work: (report: StepReport) => Promise<Result>): Promise<Result>
}

/** One order, all the way to a paid payout. */
export async function tellStory(
  demo: Demo,
  { step }: Teller,
  secrets: Secrets,
): Promise<{ people: People; closing: Closing }> {
  const orders = readStoryOrders()
  const { webhookSecret } = secrets
  await step('server', (report) => introduceServer(demo, report))
  const people = await step('people', (report) => registerPeople(demo, report, secrets))
  const { merchant, creator } = people
  await step('store', async (report) => {
    await connectStore(demo, report, merchant, secrets)
    await giveBillingAccount(demo, report, merchant)
  })
  await step('destination', (report) => setDestination(demo, report, creator))
  const offer = await step('offer', (report) => publishOffer(demo, report, merchant))
  const applications = await step('applications', (report) => applyToOffer(demo, report, people, offer.id))
  const slug = await step('decisions', (report) => decideApplications(demo, report, merchant, applications))
  await step('link', (report) => resolveLink(demo, report, slug, creator))
  const visits = await step('clicks', (report) => followLink(demo, report, slug))
  const deliveries = makeDeliveries(orders, visits)
  await step('orders', (report) => sendOrders(demo, report, merchant, webhookSecret, deliveries.first))
  await step('repetitions', (report) => sendAgain(demo, report, merchant, webhookSecret, deliveries))
  await step('views', (report) => compareViews(demo, report, people))
  await step('close', (report) => closeCycle(demo, report, merchant, orders.first))
  await step('payment', (report) => payInvoice(demo, report, people))
  // Of one store, events are applied in their order: once this one is a sale, the repetitions before it are done with too.
  await step('later-order', (report) => sendOrders(demo, report, merchant, webhookSecret, [deliveries.later]))
  await step('failed-payout', (report) => failPayout(demo, report, people))
  await step('payout', (report) => payOut(demo, report, people))
  const closing = await step('statement', (report) => closeBooks(demo, report, people, orders))
  await step('verification', async (report) => showVerification(demo, report, closing))
  return { people, closing }
}

async function introduceServer(demo: Demo, report: StepReport): Promise<void> {
  const listening = await demo.server.ready()
  report.row(
    'service',
    listening.url,
    `process ${demo.server.pid}; kill -9 it at any moment, the figures stay the same`,
  )
  report.row('processor', ...demo.processor.describe(listening))
  report.row('database', demo.environment.DATABASE_URL ?? '')
}
