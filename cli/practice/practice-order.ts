import type { App } from '../../server/app.ts'
import { linksOfClicks } from '../../server/clicks/clicks.service.ts'
import { resolveLink } from '../../server/links/links.service.ts'
import { isoTime } from '../../server/platform/clock.ts'
import { displayMoney } from '../../shared/money.ts'
import { sendEvents } from '../replay/deliver.ts'
import { ServiceCaller } from '../replay/service-caller.ts'
import type { Session } from '../replay/session.ts'
import {
  linkValues,
  priceFor,
  saleBody,
  sendingStore,
  signAsStore,
  valuesWithoutClick,
} from '../replay/store-events.ts'

/** What happens to an order: the topic and the order's status of the shop's webhook then, and what can follow. */
export const STEPS = {
  pay: { label: 'Buy and pay now', topic: 'orders/paid', status: 'paid', next: ['refund'] },
  order: { label: 'Pay on delivery', topic: 'orders/create', status: 'pending', next: ['deliver', 'cancel'] },
  deliver: { label: 'Deliver, take the cash', topic: 'orders/paid', status: 'paid', next: ['refund'] },
  cancel: { label: 'Cancel', topic: 'orders/cancelled', status: 'voided', next: [] },
  refund: { label: 'Refund', topic: 'orders/updated', status: 'refunded', next: [] },
} as const
export type Step = keyof typeof STEPS

/** A hundred rupees, in paisa. */
const PRICE_STEP = 10_000

/** Of steps that decide no sale. */
const EFFECTS: Partial<Record<Step, string>> = {
  order: 'a pending order, which moves no money',
  cancel: 'no longer pending, no commission',
  refund: 'the sale stays; its merchant can ask for credit',
}

export type Visit = Awaited<ReturnType<typeof visitOf>>
export type Order = Awaited<ReturnType<typeof newOrder>>

/** The product at an address, and where its visitor came from. Reads the tracking reference, as a shop's theme does. The price makes the commission of one sale reach the payout threshold. */
export async function visitOf({ platform, database }: App, address: URL) {
  const id = address.searchParams.get(platform.config.TRACKING_PARAMETER) ?? ''
  const found = (await linksOfClicks(database.reader, platform.keys, [id])).get(id)
  const link = found ? await resolveLink(platform, found.link.slug) : null
  const handle = decodeURIComponent(address.pathname.split('/').at(-1) ?? '')
  return {
    address,
    title: link?.offer.title ?? handle.replaceAll('-', ' '),
    price: Math.ceil(priceFor(link, platform.config.PAYOUT_THRESHOLD) / PRICE_STEP) * PRICE_STEP,
    click: found && link ? { id, at: found.click.created_at, link } : null,
  }
}

/** A new order, not sent yet: of the shop of the link's merchant, or without a link of the shop with that host. */
export async function newOrder(app: App, { address, title, price, click }: Visit) {
  const sender = await sendingStore(app, click ? { link: click.link.slug } : { store: address.hostname })
  const values = click
    ? { click: click.id, clickAt: click.at, ...(await linkValues(app, click.link)) }
    : valuesWithoutClick(app)
  const body = (await saleBody({ ...values, notAfter: app.platform.clock.now() }, price))
    .replace(/(?<="landing_site": )".*?"/, () => JSON.stringify(address.pathname + address.search))
    .replaceAll('chenab-lawn.example.pk', address.hostname)
    // The fixture's buyer has the name of a seeded creator.
    .replaceAll('Bilal', 'Hira')
    .replaceAll('bilal', 'hira')
    .replaceAll('Embroidered Lawn Suit, 3 Piece', () => JSON.stringify(title).slice(1, -1))
  const { order_number: number } = JSON.parse(body) as { order_number: number }
  return { number, title, body, sender, history: [] as { step: Step; result: string }[] }
}

/** Sends the shop's webhook about a step to the service at `url`, and waits for what comes of it. Returns whether a sale was accepted. */
export async function takeStep(app: App, url: string, order: Order, step: Step): Promise<boolean> {
  const { topic, status } = STEPS[step]
  const now = JSON.stringify(isoTime(app.platform.clock.now()))
  // The order's own fields come before those of its customer.
  order.body = order.body
    .replace(/(?<="financial_status": )"\w+"/, JSON.stringify(status))
    .replace(/(?<="updated_at": )".*?"/, now)
    .replace(/(?<="cancelled_at": )null/, step === 'cancel' ? now : 'null')
  const options = { as: 'store', times: 1 } as const
  const session: Session = { app, caller: new ServiceCaller(url), options, progress: () => {} }
  const event = { fixture: `practice order #${order.number}`, expected: null, topic }
  const signed = signAsStore(session, order.sender, event, Buffer.from(order.body))
  const [replay] = await sendEvents(session, [signed])
  const { answers = [], event: taken, sale } = replay ?? {}
  const decision =
    sale?.acceptance_status === 'accepted'
      ? `sale accepted, commission ${displayMoney(sale.commission)}`
      : sale
        ? `sale rejected: ${sale.rejection_reason}`
        : (taken?.reason ?? EFFECTS[step])
  order.history.push({ step, result: `${topic}, HTTP ${answers[0]?.status}: ${decision}` })
  return sale?.acceptance_status === 'accepted'
}
