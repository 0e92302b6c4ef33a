import type { App } from '../../server/app.ts'
import { linksOfClicks } from '../../server/clicks/clicks.service.ts'
import { resolveLink, type ShownLink } from '../../server/links/links.service.ts'
import { isoTime } from '../../server/platform/clock.ts'
import { displayMoney } from '../../shared/money.ts'
import { sendEvents } from '../replay/deliver.ts'
import { ServiceCaller } from '../replay/service-caller.ts'
import type { Session } from '../replay/session.ts'
import {
  linkValues,
  priceFor,
  type Sender,
  saleBody,
  sendingStore,
  signAsStore,
  valuesWithoutClick,
} from '../replay/store-events.ts'

/** What happens to an order: the topic and the order's status of the shop's webhook then, what it does, and what can follow. */
export const STEPS = {
  pay: { label: 'Buy and pay now', topic: 'orders/paid', status: 'paid', effect: '', next: ['refund'] },
  order: {
    label: 'Order, pay on delivery',
    ...{ topic: 'orders/create', status: 'pending', effect: 'a pending order, which moves no money' },
    next: ['deliver', 'cancel'],
  },
  deliver: {
    label: 'Deliver, take the cash',
    topic: 'orders/paid',
    status: 'paid',
    effect: '',
    next: ['refund'],
  },
  cancel: {
    label: 'Cancel',
    ...{ topic: 'orders/cancelled', status: 'voided', effect: 'no longer pending, no commission' },
    next: [],
  },
  refund: {
    label: 'Refund',
    ...{
      topic: 'orders/updated',
      status: 'refunded',
      effect: 'the sale stays; its merchant can ask for credit',
    },
    next: [],
  },
} as const
export type Step = keyof typeof STEPS

/** A product page as a visitor opened it. */
export interface Visit {
  address: URL
  title: string
  /** Paisa. */
  price: number
  /** Where the visitor came from; `null` for nowhere. */
  click: { id: string; at: number; link: ShownLink } | null
}

export interface Order {
  name: string
  title: string
  /** The latest body. */
  body: string
  sender: Sender
  history: { step: Step; result: string }[]
}

/** Reads the tracking reference, as a shop's theme does. The price makes the commission of one sale reach the payout threshold. */
export async function visitOf({ platform, database }: App, address: URL): Promise<Visit> {
  const id = address.searchParams.get(platform.config.TRACKING_PARAMETER) ?? ''
  const found = (await linksOfClicks(database.reader, platform.keys, [id])).get(id)
  const link = found ? await resolveLink(platform, found.link.slug) : null
  const handle = decodeURIComponent(address.pathname.split('/').at(-1) ?? '')
  return {
    address,
    title: link?.offer.title ?? handle.replaceAll('-', ' '),
    price: priceFor(link, platform.config.PAYOUT_THRESHOLD),
    click: found && link ? { id, at: found.click.created_at, link } : null,
  }
}

/** A new order, not sent yet: of the shop of the link's merchant, or without a link of the shop with that host. */
export async function newOrder(app: App, { address, title, price, click }: Visit): Promise<Order> {
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
  const { name } = JSON.parse(body) as { name: string }
  return { name, title, body, sender, history: [] }
}

/** Sends the shop's webhook about a step to the service at `url`, and waits for what comes of it. Returns whether a sale was accepted. */
export async function takeStep(app: App, url: string, order: Order, step: Step): Promise<boolean> {
  const { topic, status, effect } = STEPS[step]
  const now = JSON.stringify(isoTime(app.platform.clock.now()))
  // The order's own fields come before those of its customer.
  order.body = order.body
    .replace(/(?<="financial_status": )"\w+"/, JSON.stringify(status))
    .replace(/(?<="updated_at": )".*?"/, now)
    .replace(/(?<="cancelled_at": )null/, step === 'cancel' ? now : 'null')
  const options = { as: 'store', times: 1 } as const
  const session: Session = { app, caller: new ServiceCaller(url), options, progress: () => {} }
  const event = { fixture: `practice order ${order.name}`, expected: null, topic }
  const signed = signAsStore(session, order.sender, event, Buffer.from(order.body))
  const [replay] = await sendEvents(session, [signed])
  const { answers = [], event: taken, sale } = replay ?? {}
  const decision =
    sale?.acceptance_status === 'accepted'
      ? `sale accepted, commission ${displayMoney(sale.commission)}`
      : sale
        ? `sale rejected: ${sale.rejection_reason}`
        : (taken?.reason ?? effect)
  order.history.push({ step, result: `${topic}, HTTP ${answers[0]?.status}: ${decision}` })
  return sale?.acceptance_status === 'accepted'
}
