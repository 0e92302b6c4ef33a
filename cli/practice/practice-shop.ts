import type { FastifyBodyParser, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../server/app.ts'
import { escapeHtml, htmlPage, htmlReply, pagePolicy } from '../../server/http/pages.ts'
import { newestLinks } from '../../server/links/links.service.ts'
import { listStores } from '../../server/stores/stores.service.ts'
import { displayMoney } from '../../shared/money.ts'
import { Failure } from '../failures.ts'
import { newOrder, type Order, STEPS, type Step, takeStep, visitOf } from './practice-order.ts'
import { startPracticeSchedule } from './practice-schedule.ts'

/** How often the practice schedule runs, ms. */
const ROUND_MS = 20_000
const MAX_LISTED = 20
const POLICY = pagePolicy("style-src 'self'; img-src data:", "'self'")

const PASSING_MONTHS = `<aside><p>In a real marketplace this takes a month. Here a shop's month ends within ${ROUND_MS / 1000} seconds of a sale: its billing
cycle closes and the sandbox pays the invoice. ${ROUND_MS / 1000} seconds later the creator is paid. See it as it happens in the
<a href="/app">marketplace</a>: as the merchant under Sales and Billing, as the creator under Sales and Payouts.</p></aside>`

/** `*`: the host and path of a product page. */
interface ProductRoute {
  Params: { '*': string }
  Body: { step?: string } | undefined
}
interface OrderRoute {
  Params: { number: string }
  Body: { step?: string } | undefined
}

/**
 * Plays the connected shops, for practice beside a seeded service: affiliate links lead to its product pages, and what a buyer and the shop
 * do there is reported as the shop's signed webhooks.
 */
export function addPracticeShop(server: FastifyInstance, app: App, { roundMs = ROUND_MS } = {}): void {
  const orders = new Map<string, Order>()
  const schedule = startPracticeSchedule(app, roundMs)
  server.addHook('onClose', () => schedule.stop())
  server.addHook('onSend', async (request, reply) => {
    const target = reply.getHeader('location')
    if (reply.statusCode !== 302 || typeof target !== 'string' || !target.startsWith('https://')) return
    const base = `${request.protocol}://${request.host}/practice`
    reply.header('location', target.replace('https:/', base))
  })

  const step = async (order: Order, name: Step) => {
    if (await takeStep(app, server.listeningOrigin, order, name))
      schedule.endMonthOf(order.sender.store.merchantId)
  }

  server.register(async (scope) => {
    const asFields: FastifyBodyParser<string> = (_request, body, done) =>
      done(null, Object.fromEntries(new URLSearchParams(body)))
    scope.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, asFields)
    scope.setErrorHandler((error, _request, reply) => {
      if (!(error instanceof Failure)) throw error
      return send(reply.code(404), 'This shop cannot sell', text(error.message))
    })

    scope.get('/practice', async (_request, reply) => {
      const links = (await newestLinks(app.platform, MAX_LISTED)).filter((link) => link.active)
      const { items } = await listStores(app.platform, null, { limit: MAX_LISTED })
      const stores = items.filter((store) => store.removed_at === null)
      return send(
        reply,
        'Practice shop',
        `<p>This page plays the connected shops. Follow a creator's link and buy: the shop reports the order to the marketplace by signed
webhook, as a Shopify store does.</p>
<h2>Affiliate links</h2>${list(links, ({ slug, offer, creator }) => [`/go/${slug}`, `${offer.title}, by ${creator.display_name}`])}
<h2>Shops, without a link</h2>${list(stores, ({ shop_domain: shop }) => [`/practice/${shop}/products/gift`, shop])}
<h2>Orders</h2>${list([...orders.values()], (order) => [pageOf(order), `#${order.number} ${order.title}`])}`,
      )
    })

    scope.get<ProductRoute>('/practice/*', async (request, reply) => {
      const { title, price, click } = await visitOf(app, addressOf(request))
      const came = click
        ? `You came by ${click.link.creator.display_name}'s link.`
        : 'You came without an affiliate link: no one earns a commission.'
      return send(reply, title, `<p>${displayMoney(price)}</p>${text(came)}${form(['pay', 'order'])}`)
    })
    scope.post<ProductRoute>('/practice/*', async (request, reply) => {
      const order = await newOrder(app, await visitOf(app, addressOf(request)))
      await step(order, request.body?.step === 'order' ? 'order' : 'pay')
      orders.set(String(order.number), order)
      return reply.redirect(pageOf(order), 303)
    })

    const orderAt = (number: string): Order => {
      const order = orders.get(number)
      if (order) return order
      throw new Failure('This order is not known. Orders of the practice shop end with the service.')
    }
    scope.get<OrderRoute>('/practice/orders/:number', async ({ params }, reply) => {
      const order = orderAt(params.number)
      const history = order.history.map(
        ({ step, result }) => `<li>${STEPS[step].label}: ${escapeHtml(result)}</li>`,
      )
      const body = `${text(order.title)}<ol>${history.join('')}</ol>${form(nextSteps(order))}`
      return send(reply, `Order #${order.number}`, body)
    })
    scope.post<OrderRoute>('/practice/orders/:number', async ({ params, body }, reply) => {
      const order = orderAt(params.number)
      const next = nextSteps(order).find((name) => name === body?.step)
      if (next) await step(order, next)
      return reply.redirect(pageOf(order), 303)
    })
  })
}

/** The shop's own address of a page: `/practice/HOST/PATH` stands for `https://HOST/PATH`. */
function addressOf(request: FastifyRequest): URL {
  const address = `https://${request.url.slice('/practice/'.length)}`
  if (!URL.canParse(address)) throw new Failure('This is not the address of a product.')
  return new URL(address)
}

function nextSteps({ history }: Order): readonly Step[] {
  return STEPS[history.at(-1)?.step ?? 'cancel'].next
}

function pageOf(order: Order): string {
  return `/practice/orders/${order.number}`
}

function list<Item>(
  items: readonly Item[],
  linkOf: (item: Item) => [address: string, label: string],
): string {
  const links = items
    .map(linkOf)
    .map(([to, label]) => `<li><a href="${to}"><bdi>${escapeHtml(label)}</bdi></a></li>`)
  return links.length > 0 ? `<ul>${links.join('')}</ul>` : '<p>None yet.</p>'
}

function text(content: string): string {
  return `<p><bdi>${escapeHtml(content)}</bdi></p>`
}

function form(steps: readonly Step[]): string {
  const buttons = steps.map((name) => `<button name="step" value="${name}">${STEPS[name].label}</button>`)
  return `<form method="post">${buttons.join(' ')}</form>`
}

function send(reply: FastifyReply, title: string, body: string): FastifyReply {
  return htmlReply(reply, POLICY).send(
    htmlPage({
      title: escapeHtml(title),
      head: '<link rel="icon" href="data:,"><link rel="stylesheet" href="/docs/pages.css">',
      body: `<header class="site"><strong>Practice shop</strong> <a href="/practice">All links and orders</a> <a href="/app">Marketplace</a></header>
<main><h1><bdi>${escapeHtml(title)}</bdi></h1>${body}${PASSING_MONTHS}</main>`,
    }),
  )
}
