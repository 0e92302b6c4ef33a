import { randomUUID } from 'node:crypto'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../fixtures/fill-fixture.ts'
import { signShopifyBody } from '../../server/shopify/signature.ts'
import { type Sale, salePage } from '../../shared/schemas/sales.ts'
import type { Demo } from './demo.ts'
import type { Visit } from './offer.steps.ts'
import type { People, Person } from './people.steps.ts'
import { rupees } from './rupees.ts'
import { COUPON_CODE, CREATOR, paisa, SHOP_DOMAIN, type StoryOrder, type StoryOrders } from './scenario.ts'
import { refusedBy } from './service-client.ts'
import type { StepReport } from './step-report.ts'

/** An order as the store sends it: these bytes under this webhook id, however often it has to be sent. */
export interface Delivery {
  order: StoryOrder
  webhookId: string
  body: Buffer
}

export interface Deliveries {
  first: Delivery[]
  later: Delivery
  /** A captured order that is sent once more, under a webhook id of its own. */
  replay: Delivery
}

/** Fills the orders with the visits that they came from. Made once a demo, so that a repeated step sends the same bytes. */
export function makeDeliveries(orders: StoryOrders, visits: readonly Visit[]): Deliveries {
  const delivery = (order: StoryOrder, index: number): Delivery => {
    const visit = visits[index % visits.length]
    if (!visit) throw new Error('the story needs a visit')
    const fill = {
      click: visit.clickId,
      clickAt: visit.at,
      creatorEmail: CREATOR.email,
      coupon: COUPON_CODE,
    }
    const body = fillFixture(order.template, { ...fill, productId: FIXTURE_PRODUCT_ID })
    return { order, webhookId: randomUUID(), body: Buffer.from(body) }
  }
  const first = orders.first.map(delivery)
  const [, second] = first
  if (!second) throw new Error('the story needs two orders at least')
  return {
    first,
    later: delivery(orders.later, first.length),
    replay: { ...second, webhookId: randomUUID() },
  }
}

/** Sends the orders one after the other and waits until each has become a sale, accepted or rejected. */
export async function sendOrders(
  demo: Demo,
  report: StepReport,
  merchant: Person,
  secret: string,
  deliveries: readonly Delivery[],
): Promise<void> {
  let slowest = 0
  for (const delivery of deliveries) {
    const sentAt = performance.now()
    const status = await deliver(demo, delivery, secret)
    slowest = Math.max(slowest, performance.now() - sentAt)
    report.check(`answer to order ${delivery.order.orderName}`, status, 200)
  }
  const sales = await demo.until('all orders to become sales', async () => {
    const { items } = await salesOf(demo, merchant)
    const found = deliveries.map(({ order }) => items.find((sale) => sale.order_id === order.orderId))
    return found.every((sale) => sale !== undefined) ? found : null
  })
  report.row('order', 'decision', 'net', 'commission', 'fee', 'what it is')
  deliveries.forEach(({ order }, index) => {
    const sale = sales[index]
    if (sale) compare(report, order, sale)
  })
  report.row('answered', `${deliveries.length} × 200, the slowest after ${Math.ceil(slowest)} ms`)
}

function compare(report: StepReport, order: StoryOrder, sale: Sale): void {
  const fee = paisa(sale.platform_fee ?? '0.00')
  const decision = sale.rejection_reason ?? sale.acceptance_status
  const amounts = [paisa(sale.net_amount), paisa(sale.commission), fee].map(rupees)
  report.row(order.orderName, decision, ...amounts, order.what)
  report.check(`decision on ${order.orderName}`, decision, order.rejectionReason ?? 'accepted')
  report.check(
    `amounts of ${order.orderName}`,
    amounts.join(' '),
    [order.net, order.commission, order.fee].map(rupees).join(' '),
  )
}

/** The same webhook again, the same order under another webhook id, and an order with a wrong signature. */
export async function sendAgain(
  demo: Demo,
  report: StepReport,
  merchant: Person,
  secret: string,
  { first, replay }: Deliveries,
): Promise<void> {
  const [redelivery] = first
  if (!redelivery) throw new Error('the story has no orders')
  const before = (await salesOf(demo, merchant)).items.length
  const redelivered = await deliver(demo, redelivery, secret)
  const replayed = await deliver(demo, replay, secret)
  const forged = await deliver(
    demo,
    { ...redelivery, webhookId: randomUUID() },
    'a secret that is not the store’s',
  )
  const after = (await salesOf(demo, merchant)).items.length
  report.row('redelivery', `${redelivery.order.orderName}, same webhook id`, String(redelivered))
  report.row('replay', `${replay.order.orderName}, another webhook id`, String(replayed))
  report.row('forgery', `${redelivery.order.orderName}, signed with another secret`, String(forged))
  report.row('sales', `${before} before, ${after} after`)
  report.check(
    'answers to redelivery, replay, forgery',
    `${redelivered} ${replayed} ${forged}`,
    '200 200 401',
  )
  report.check('sales after the repetitions', after, before)
}

/** One delivery, signed as Shopify signs; answers the status. */
async function deliver(demo: Demo, { order, webhookId, body }: Delivery, secret: string): Promise<number> {
  const answer = await demo.client.send({
    method: 'POST',
    url: '/webhooks/store-sales',
    headers: {
      'content-type': 'application/json',
      'x-shopify-topic': 'orders/paid',
      'x-shopify-shop-domain': SHOP_DOMAIN,
      'x-shopify-webhook-id': webhookId,
      'x-shopify-hmac-sha256': signShopifyBody(body, secret),
    },
    body,
  })
  if (answer.status >= 500) throw refusedBy(`order ${order.orderName}`, answer)
  return answer.status
}

export function salesOf(demo: Demo, person: Person): Promise<{ items: Sale[] }> {
  return demo.client.call('GET', '/sales?limit=100', salePage, { token: person.token })
}

/** Each sees own sales only: the creator those of the link, the rejected applicant none. */
export async function compareViews(demo: Demo, report: StepReport, people: People): Promise<void> {
  const views = await Promise.all([
    salesOf(demo, people.merchant),
    salesOf(demo, people.creator),
    salesOf(demo, people.otherCreator),
  ])
  const [merchant, creator, other] = views.map((view) =>
    view.items.filter((sale) => sale.acceptance_status === 'accepted'),
  )
  report.row('visible to', people.merchant.name, `${merchant?.length} accepted sales`)
  report.row('', people.creator.name, `${creator?.length} accepted sales, platform fee not shown`)
  report.row('', people.otherCreator.name, `${other?.length} sales`)
  report.check('accepted sales that the creator sees', creator?.length ?? 0, merchant?.length ?? 0)
  report.check('sales that the other creator sees', views[2]?.items.length ?? 0, 0)
  report.check(
    'platform fees that the creator sees',
    creator?.filter((sale) => sale.platform_fee !== undefined).length ?? 0,
    0,
  )
}
