import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../../fixtures/fill-fixture.ts'
import { orderHeaders } from '../testkit/orders.ts'
import { DAY } from '../testkit/testbed.ts'
import { selfSigned } from './self-signed.ts'
import { productPage, type StoreSettings } from './theme.ts'

const FIXTURE = new URL(
  '../../../fixtures/store-sales/note-attributes-without-landing-site.json',
  import.meta.url,
)
const QUIET_MS = 500
/** Shopify deletes a cart after so many days without a change. */
const CART_DAYS = 14

interface Line {
  properties: { name: string; value: string }[]
}

interface Cart {
  token: string
  attributes: Record<string, string>
  lines: Line[]
  touchedAt: number
}

interface Answer {
  status?: number
  headers?: Record<string, string | string[]>
  body?: string
}

/**
 * A Shopify store as far as its Ajax API and its orders are documented: carts by the cookie `cart`, attributes that `/cart/update.js` merges
 * and the standard action replaces, a checkout that ends the cart, a buy-now button that goes without it. Each purchase is reported as a
 * signed `orders/paid`.
 */
export class Storefront {
  readonly host: string
  settings: StoreSettings
  readonly carts = new Map<string, Cart>()
  /** Method and path of each request since `reopen`. */
  requests: string[] = []
  #lastRequestAt = 0
  /** Ids of the orders since `reopen`. */
  orders: string[] = []
  #server: Server
  #service: { url: string; shopDomain: string; secret: string }
  #clockAhead = 0
  #landingSite: string | null = null
  #orderNumber = 2000

  constructor(host: string, service: { url: string; shopDomain: string; secret: string }) {
    this.host = host
    this.#service = service
    this.settings = this.#usual()
    this.#server = createServer(selfSigned(host), (request, response) => {
      this.#answer(request).then(
        ({ status = 200, headers = {}, body = '' }) => response.writeHead(status, headers).end(body),
        (error: unknown) => response.writeHead(500).end(String(error)),
      )
    })
  }

  /** Answers the port. */
  async open(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  /** Starts over with other settings: no cart, no order, the clock right. */
  reopen(settings: Partial<StoreSettings> = {}): void {
    this.settings = { ...this.#usual(), ...settings }
    this.carts.clear()
    this.requests = []
    this.orders = []
    this.#clockAhead = 0
    this.#landingSite = null
  }

  now(): number {
    return Date.now() + this.#clockAhead
  }

  /** Moves the store's clock on. Carts that are too old then are gone. */
  passDays(days: number): void {
    this.#clockAhead += days * DAY
    for (const [token, { touchedAt }] of this.carts) {
      if (this.now() - touchedAt > CART_DAYS * DAY) this.carts.delete(token)
    }
  }

  /** A page asks within milliseconds of what made it ask: after fifty times that, no more requests come. */
  isQuiet(): boolean {
    return Date.now() - this.#lastRequestAt > QUIET_MS
  }

  countOf(request: string): number {
    return this.requests.filter((one) => one === request).length
  }

  #usual(): StoreSettings {
    return {
      scriptTag: `<script src="${this.#service.url}/store.js" async></script>`,
      buyNow: true,
      codForm: false,
      hasConsentApi: true,
      marketingAllowed: true,
      cartUpdates: 'accepted',
      setsCookies: true,
      tellsLandingSite: false,
    }
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    const url = new URL(request.url ?? '/', `https://${this.host}`)
    this.requests.push(`${request.method} ${url.pathname}`)
    this.#lastRequestAt = Date.now()
    const body = await buffer(request)
    const token = /(?:^|; )cart=([^;]*)/.exec(request.headers.cookie ?? '')?.[1] ?? ''
    const cart = this.carts.get(token) ?? { token: '', attributes: {}, lines: [], touchedAt: this.now() }
    switch (url.pathname) {
      case '/cart.js':
        return cartAnswer(cart)
      case '/cart/update.js':
        if (this.settings.cartUpdates === 'refused') return { status: 403, body: 'Forbidden' }
        if (this.settings.cartUpdates === 'unanswered') return new Promise(() => {})
        merge(cart, JSON.parse(body.toString()).attributes)
        return this.#kept(cart)
      case '/cart/add.js':
        cart.lines.push(await lineIn(request, body))
        return this.#kept(cart)
      case '/cart/clear.js':
        // What some apps do when they empty a cart: the next one has another token.
        this.carts.delete(cart.token)
        return this.#kept({ ...cart, token: '', attributes: {}, lines: [] })
      case '/api/cart-attributes':
        cart.attributes = {}
        for (const { key, value } of JSON.parse(body.toString())) cart.attributes[key] = value
        return this.#kept(cart)
      case '/consent':
        this.settings.marketingAllowed = body.toString() === 'true'
        return {}
      case '/checkout': {
        this.carts.delete(cart.token)
        const location = await this.#order(cart.lines, cart.attributes)
        return { status: 302, headers: { location, 'set-cookie': 'cart=; Path=/; Max-Age=0' } }
      }
      case '/apps/cod/order':
        return {
          headers: { location: await this.#order([{ properties: [] }], await fieldsIn(request, body)) },
        }
      case '/checkouts/buy-now':
        return { headers: { location: await this.#order([await lineIn(request, body)], {}) } }
      default:
        return this.#page(url)
    }
  }

  async #page(url: URL): Promise<Answer> {
    const html = { 'content-type': 'text/html; charset=utf-8' }
    if (url.pathname.startsWith('/thanks/')) return { headers: html, body: '<h1>Thank you</h1>' }
    if (url.pathname === '/favicon.ico') return { status: 404 }
    if (/^\/cart\/\d+:1$/.test(url.pathname)) {
      const attributes = named(url.searchParams, 'attributes')
      const location = await this.#order([{ properties: [] }], Object.fromEntries(attributes))
      return { status: 302, headers: { location } }
    }
    this.#landingSite ??= url.pathname + url.search
    return { headers: html, body: productPage(this.settings) }
  }

  #kept(cart: Cart): Answer {
    if (cart.token === '') cart.token = `hWN${randomUUID()}`
    cart.touchedAt = this.now()
    this.carts.set(cart.token, cart)
    const answer = cartAnswer(cart)
    if (!this.settings.setsCookies) return answer
    const cookie = `cart=${cart.token}; Path=/; Max-Age=${CART_DAYS * 86_400}; SameSite=Lax`
    return { ...answer, headers: { ...answer.headers, 'set-cookie': cookie } }
  }

  /** Reports the order before the buyer sees its page; answers that page's path. */
  async #order(lines: Line[], attributes: Record<string, string>): Promise<string> {
    this.#orderNumber += 1
    const id = 6_200_000_000_000 + this.#orderNumber
    const unfilled = { click: 'none', clickAt: this.now(), creatorEmail: 'x', productId: FIXTURE_PRODUCT_ID }
    const order = JSON.parse(fillFixture(readFileSync(FIXTURE, 'utf8'), unfilled))
    const [line] = order.line_items
    const body = JSON.stringify({
      ...order,
      id,
      name: `#${this.#orderNumber}`,
      order_number: this.#orderNumber,
      created_at: new Date(this.now()).toISOString(),
      landing_site: this.settings.tellsLandingSite ? this.#landingSite : null,
      note_attributes: Object.entries(attributes).map(([name, value]) => ({ name, value })),
      line_items: lines.map(({ properties }, index) => ({ ...line, id: line.id + index, properties })),
    })
    const { url, shopDomain, secret } = this.#service
    const raw = Buffer.from(body.replaceAll('/', '\\/'))
    const answer = await fetch(`${url}/webhooks/store-sales`, {
      method: 'POST',
      body: raw,
      headers: orderHeaders({ domain: shopDomain, secret }, randomUUID(), raw),
    })
    if (!answer.ok) throw new Error(`the webhook was answered ${answer.status}: ${await answer.text()}`)
    this.orders.push(String(id))
    return `/thanks/${id}`
  }
}

function cartAnswer({ token, attributes, lines }: Cart): Answer {
  const body = JSON.stringify({ token, note: null, attributes, item_count: lines.length, items: lines })
  return { headers: { 'content-type': 'application/json', 'cache-control': 'no-store' }, body }
}

/** As documented: named attributes are set, an empty one is removed, others stay. */
function merge(cart: Cart, attributes: Record<string, string | null>): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value) cart.attributes[name] = value
    else delete cart.attributes[name]
  }
}

async function formIn(request: IncomingMessage, body: Buffer): Promise<FormData> {
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  return await new Response(new Uint8Array(body), { headers }).formData()
}

/** The fields of an app's form, which it writes into the order as attributes. */
async function fieldsIn(request: IncomingMessage, body: Buffer): Promise<Record<string, string>> {
  return Object.fromEntries([...(await formIn(request, body))].map(([name, value]) => [name, String(value)]))
}

/** A product form's line with its properties. */
async function lineIn(request: IncomingMessage, body: Buffer): Promise<Line> {
  const properties = named(await formIn(request, body), 'properties')
  return { properties: properties.map(([name, value]) => ({ name, value })) }
}

/** The fields `group[NAME]`, by that name. */
function named(fields: Iterable<[string, unknown]>, group: string): [name: string, value: string][] {
  return [...fields].flatMap(([field, value]) => {
    const name = new RegExp(`^${group}\\[(.+)\\]$`).exec(field)?.[1]
    return name === undefined ? [] : [[name, String(value)]]
  })
}
