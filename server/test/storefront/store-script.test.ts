// proof only
// time limit: 120 s
// database: none
import { accessSync, constants } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readReceipt } from '../../sales/accept-sale.rule.ts'
import { addLink, addLiveOffer, addMerchant, OFFER } from '../testkit/listings.ts'
import { addUser } from '../testkit/people.ts'
import { eventually, openServiceBed, type ServiceBed } from '../testkit/service-bed.ts'
import { DAY } from '../testkit/testbed.ts'
import { Storefront } from './storefront.ts'
import type { StoreSettings } from './theme.ts'

const CHROMIUM = '/usr/bin/chromium'
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
const HOST = new URL(OFFER.product_url).hostname
const HOME = `https://${HOST}/`

interface World {
  bed: ServiceBed
  store: Storefront
  browser: Browser
  /** Slugs of two creators' links to the same product. */
  links: { sana: string; bilal: string }
}

const it = suite<World>('a visitor in a real browser')

it.before(async (world) => {
  const bed = await openServiceBed('sqlite')
  const { platform } = bed.service.app
  const merchant = await addMerchant(platform)
  const { id } = await addLiveOffer(platform, merchant)
  const [sana, bilal] = [
    await addUser(platform, 'creator', 'Sana'),
    await addUser(platform, 'creator', 'Bilal'),
  ]
  const links = {
    sana: (await addLink(platform, merchant, sana, id)).slug,
    bilal: (await addLink(platform, merchant, bilal, id)).slug,
  }
  const store = new Storefront(HOST, {
    url: bed.url,
    shopDomain: `s${merchant.userId}.myshopify.com`,
    secret: `secret-${merchant.userId}`,
  })
  const port = await store.open()
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [...FLAGS, `--host-resolver-rules=MAP ${HOST}:443 127.0.0.1:${port}`],
  })
  Object.assign(world, { bed, store, browser, links })
})
it.after(async ({ bed, store, browser }) => {
  await browser?.close()
  await store?.close()
  await bed?.close()
})

/** A visitor with a fresh browser profile in front of the store. */
class Visitor {
  readonly store: Storefront
  readonly context: BrowserContext
  readonly errors: string[] = []
  readonly #bed: ServiceBed
  #ahead = 0

  constructor({ store, bed }: World, context: BrowserContext) {
    this.store = store
    this.#bed = bed
    this.context = context
  }

  async tab(): Promise<Page> {
    const page = await this.context.newPage()
    page.on('pageerror', (error) => this.errors.push(String(error)))
    return page
  }

  /** Follows an affiliate link; answers the click's id from the page that it leads to. */
  async follow(page: Page, slug: string): Promise<string> {
    await page.goto(`${this.#bed.url}/go/${slug}`)
    const reference = new URL(page.url()).searchParams.get('aff_ref')
    assert.ok(reference && page.url().startsWith(HOME), page.url())
    return reference
  }

  /** Opens a page of the store by its plain address, and waits until its requests are over. */
  async open(page: Page, path = ''): Promise<void> {
    await page.goto(HOME + path)
    await this.quiet()
  }

  /** Waits until no page asks the store for anything. */
  async quiet(): Promise<void> {
    await eventually(async () => this.store.isQuiet(), Boolean, 5000)
  }

  /** Waits until the browser keeps the reference for later. */
  async remembered(reference: string): Promise<void> {
    await eventually(
      async () => (await this.context.cookies(HOME)).map(({ value }) => value),
      (values) => values.some((value) => value.includes(reference)),
      5000,
    )
  }

  /** Waits until a cart of the store carries the reference. */
  async carried(reference: string): Promise<void> {
    await eventually(
      async () => [...this.store.carts.values()].map(({ attributes }) => attributes.aff_ref),
      (found) => found.includes(reference),
      5000,
    )
  }

  async add(page: Page): Promise<void> {
    await page.click('[name=add]')
    await page.waitForFunction('document.querySelector("output").textContent.includes("added")')
  }

  async checkOut(page: Page): Promise<void> {
    await page.click('text=Check out')
    await page.waitForURL('**/thanks/*')
  }

  async buyNow(page: Page): Promise<void> {
    await page.click('text=Buy it now')
    await page.waitForURL('**/thanks/*')
  }

  /** What the browser keeps: the entry in localStorage and the cookie, parsed. */
  async kept(page: Page): Promise<{ storage: unknown; cookie: unknown; others: string[] }> {
    const cookies = await this.context.cookies(HOME)
    const [entry, others] = await page.evaluate<[string | null, string[]]>(
      '[localStorage.aff_ref ?? null, [...Object.keys(localStorage), ...Object.keys(sessionStorage)].filter((key) => key !== "aff_ref")]',
    )
    const cookie = cookies.find(({ name }) => name === 'aff_ref')
    if (cookie) assert.equal([cookie.sameSite, cookie.domain, cookie.path], ['Lax', HOST, '/'])
    return {
      storage: entry === null ? null : JSON.parse(entry),
      cookie: cookie ? JSON.parse(decodeURIComponent(cookie.value)) : null,
      others: [
        ...others,
        ...cookies.map(({ name }) => name).filter((name) => !['cart', 'aff_ref'].includes(name)),
      ],
    }
  }

  async passDays(days: number): Promise<void> {
    this.#ahead += days * DAY
    this.store.passDays(days)
    await this.context.clock.setFixedTime(Date.now() + this.#ahead)
  }

  /** What became of each order, oldest first. */
  async outcomes(): Promise<string[]> {
    const { reader } = this.#bed.service.app.platform.database
    const sales = await eventually(
      () => reader.selectFrom('sales').selectAll().where('order_id', 'in', this.store.orders).execute(),
      (rows) => rows.length === this.store.orders.length,
    )
    return this.store.orders.map((order) => {
      const sale = sales.find(({ order_id }) => order_id === order)
      const source = readReceipt(sale?.receipt ?? '')?.facts.order.tracking_source
      return sale?.acceptance_status === 'accepted'
        ? `accepted by ${source}: ${sale.click_id}`
        : `rejected: ${sale?.rejection_reason}`
    })
  }
}

function scenario(
  name: string,
  settings: Partial<StoreSettings>,
  work: (visitor: Visitor, world: World) => Promise<void>,
): void {
  it(name, async (world) => {
    world.store.reopen(settings)
    const context = await world.browser.newContext({ ignoreHTTPSErrors: true })
    context.setDefaultTimeout(10_000)
    try {
      const visitor = new Visitor(world, context)
      await work(visitor, world)
      assert.equal(visitor.errors, [], 'no error on the page')
    } finally {
      await context.close()
    }
  })
}

const NOTHING_KEPT = { storage: null, cookie: null, others: [] }
const UNKNOWN = 'rejected: no_tracking_reference'

function scenarios(): void {
  scenario(
    'buys from the cart; the cart carries the reference before anything is in it',
    {},
    async (visitor, { store, links }) => {
      const page = await visitor.tab()
      const before = Date.now()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      await visitor.remembered(click)
      assert.is([...store.carts.values()][0]?.lines.length, 0)
      const { storage, cookie, others } = await visitor.kept(page)
      assert.equal(storage, cookie)
      const { ref, at } = storage as { ref: string; at: number }
      assert.is(ref, click)
      assert.ok(at >= before && at <= Date.now())
      assert.equal(others, [])
      assert.is(await page.evaluate('affiliateReference()'), click)
      await visitor.add(page)
      await visitor.quiet()
      assert.is(store.countOf('POST /cart/update.js'), 1)
      assert.is(store.countOf('GET /products/lawn'), 1, 'never reloads')
      await visitor.checkOut(page)
      assert.equal(await visitor.outcomes(), [`accepted by note_attributes: ${click}`])
    },
  )

  scenario('buys now, past the cart', {}, async (visitor, { links }) => {
    const page = await visitor.tab()
    const click = await visitor.follow(page, links.sana)
    await visitor.buyNow(page)
    assert.equal(await visitor.outcomes(), [`accepted by line_item: ${click}`])
  })

  scenario('buys now after the theme has replaced the form', {}, async (visitor, { links }) => {
    const page = await visitor.tab()
    const click = await visitor.follow(page, links.sana)
    await page.waitForSelector('input[name="properties[_aff_ref]"]', { state: 'attached' })
    await page.selectOption('#variant', 'Medium')
    // Not by a click, which fills forms too: a wallet's button is in a frame of its own.
    await page.waitForSelector(`input[name="properties[_aff_ref]"][value="${click}"]`, { state: 'attached' })
    await page.selectOption('#variant', 'Small')
    await visitor.buyNow(page)
    assert.equal(await visitor.outcomes(), [`accepted by line_item: ${click}`])
  })

  scenario(
    'gets no hidden field where there is no buy-now button',
    { buyNow: false },
    async (visitor, { links }) => {
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      assert.is(await page.locator('input[name^=properties]').count(), 0)
    },
  )

  scenario(
    'buys again after the checkout has ended the cart',
    { buyNow: false },
    async (visitor, { links }) => {
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      await visitor.remembered(click)
      await visitor.add(page)
      await visitor.checkOut(page)
      await page.goto(HOME)
      await visitor.carried(click)
      await visitor.add(page)
      await visitor.checkOut(page)
      assert.equal(await visitor.outcomes(), Array(2).fill(`accepted by note_attributes: ${click}`))
    },
  )

  scenario(
    'gets a new cart in the same page, by the theme or by another tab',
    { buyNow: false },
    async (visitor, { links, store }) => {
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      await visitor.remembered(click)
      const [first] = store.carts.keys()
      await page.click('#empty')
      await eventually(
        async () => [...store.carts.keys()],
        (tokens) => tokens.length > 0 && tokens[0] !== first,
      )
      await visitor.carried(click)
      // Another tab checks out; this one is still open and adds.
      const other = await visitor.tab()
      await other.goto(HOME)
      await visitor.add(other)
      await visitor.checkOut(other)
      await visitor.add(page)
      await visitor.carried(click)
      await visitor.checkOut(page)
      assert.equal(await visitor.outcomes(), Array(2).fill(`accepted by note_attributes: ${click}`))
    },
  )

  scenario(
    'meets a script that replaces all attributes, once and again and again',
    { buyNow: false },
    async (visitor, { links, store }) => {
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      await page.evaluate(
        'Shopify.actions.updateCart({ attributes: [{ key: "delivery", value: "Friday" }] })',
      )
      await visitor.carried(click)
      const [cart] = store.carts.values()
      assert.is(cart?.attributes.delivery, 'Friday', 'and what the other script wrote stays')
      // A rival that undoes every write.
      await page.evaluate(`
        new PerformanceObserver((list) => {
          if (list.getEntries().some(({ name }) => name.endsWith('/cart/update.js')))
            Shopify.actions.updateCart({ attributes: [] })
        }).observe({ entryTypes: ['resource'] })
        Shopify.actions.updateCart({ attributes: [] })`)
      await eventually(
        async () => store.countOf('POST /cart/update.js'),
        (count) => count === 10,
      )
      await visitor.quiet()
      assert.is(store.countOf('POST /cart/update.js'), 10, 'gives in')
      assert.is(store.countOf('GET /products/lawn'), 1)
      await visitor.add(page)
      await visitor.checkOut(page)
      assert.equal(await visitor.outcomes(), [UNKNOWN])
    },
  )

  scenario(
    'follows two links in two tabs: the later click counts in both',
    {},
    async (visitor, { links }) => {
      const first = await visitor.tab()
      const earlier = await visitor.follow(first, links.sana)
      await visitor.carried(earlier)
      const second = await visitor.tab()
      const later = await visitor.follow(second, links.bilal)
      await visitor.carried(later)
      await first.waitForSelector(`input[name="properties[_aff_ref]"][value="${later}"]`, {
        state: 'attached',
      })
      assert.is(await first.evaluate('affiliateReference()'), later)
      await first.reload()
      await visitor.quiet()
      assert.is(await first.evaluate('affiliateReference()'), later, 'an old address is not a new click')
      await visitor.add(first)
      await visitor.checkOut(first)
      await visitor.buyNow(second)
      assert.equal(await visitor.outcomes(), [
        `accepted by note_attributes: ${later}`,
        `accepted by line_item: ${later}`,
      ])
    },
  )

  scenario(
    'comes back to a page that the browser has kept in memory',
    { buyNow: false },
    async (visitor, { links, store }) => {
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      store.carts.clear()
      await page.evaluate('dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))')
      await visitor.carried(click)
    },
  )

  scenario('returns after 20 days by the plain address', {}, async (visitor, { links }) => {
    const page = await visitor.tab()
    const click = await visitor.follow(page, links.sana)
    await visitor.carried(click)
    await visitor.remembered(click)
    await visitor.passDays(20)
    await page.goto(HOME)
    await visitor.carried(click)
    await visitor.add(page)
    await visitor.checkOut(page)
    await visitor.open(page)
    await visitor.buyNow(page)
    assert.equal(await visitor.outcomes(), [
      `accepted by note_attributes: ${click}`,
      `accepted by line_item: ${click}`,
    ])
  })

  scenario('returns after 31 days: nothing is claimed', {}, async (visitor, { links, store }) => {
    const page = await visitor.tab()
    await visitor.remembered(await visitor.follow(page, links.sana))
    await visitor.quiet()
    await visitor.passDays(31)
    await visitor.open(page)
    assert.is(await page.evaluate('affiliateReference()'), null)
    await visitor.add(page)
    await visitor.checkOut(page)
    await visitor.open(page)
    await visitor.buyNow(page)
    assert.equal(await visitor.outcomes(), [UNKNOWN, UNKNOWN])
    assert.is(store.countOf('POST /cart/update.js'), 1)
  })

  scenario(
    'refuses consent: only what the address carries is used, and nothing kept',
    { marketingAllowed: false },
    async (visitor, { links, store }) => {
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      await visitor.quiet()
      assert.equal(await visitor.kept(page), NOTHING_KEPT)
      await visitor.buyNow(page)
      await visitor.follow(page, links.sana)
      await visitor.add(page)
      await visitor.quiet()
      await visitor.checkOut(page)
      await visitor.open(page)
      assert.is(await page.evaluate('affiliateReference()'), null)
      await visitor.add(page)
      await visitor.checkOut(page)
      const [byForm, byCart, later] = await visitor.outcomes()
      assert.is(byForm, `accepted by line_item: ${click}`)
      assert.match(byCart ?? '', /^accepted by note_attributes/)
      assert.is(later, UNKNOWN)
      assert.is(store.countOf('POST /cart/update.js'), 2)
    },
  )

  scenario(
    'consents later, then withdraws',
    { marketingAllowed: false },
    async (visitor, { links, store }) => {
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      await page.waitForFunction('Shopify.customerPrivacy')
      const answer = (marketing: boolean) =>
        page.evaluate(
          `new Promise((done) => Shopify.customerPrivacy.setTrackingConsent({ marketing: ${marketing} }, done))`,
        )
      await answer(true)
      const { storage, cookie } = await visitor.kept(page)
      assert.is((storage as { ref: string }).ref, click)
      assert.equal(cookie, storage)
      await visitor.passDays(15)
      await page.goto(HOME)
      await visitor.carried(click)
      await visitor.add(page)
      await visitor.checkOut(page)
      await visitor.open(page)
      await answer(false)
      assert.equal(await visitor.kept(page), NOTHING_KEPT)
      assert.is(await page.locator('input[name^=properties]').count(), 0)
      store.carts.clear()
      await visitor.open(page)
      await visitor.buyNow(page)
      assert.equal(await visitor.outcomes(), [`accepted by note_attributes: ${click}`, UNKNOWN])
    },
  )

  scenario(
    'has withdrawn consent elsewhere: the next page deletes what was kept',
    {},
    async (visitor, world) => {
      const page = await visitor.tab()
      await visitor.remembered(await visitor.follow(page, world.links.sana))
      await visitor.quiet()
      world.store.reopen({ marketingAllowed: false })
      await page.goto(HOME)
      await page.waitForFunction('!localStorage.aff_ref && !document.cookie.includes("aff_ref")')
      await visitor.buyNow(page)
      assert.equal(await visitor.outcomes(), [UNKNOWN])
      assert.is(world.store.countOf('POST /cart/update.js'), 0)
    },
  )

  scenario(
    'browses a store without the consent API',
    { hasConsentApi: false, buyNow: false },
    async (visitor, { links }) => {
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      await visitor.remembered(click)
      await visitor.open(page)
      assert.is(await page.evaluate('affiliateReference()'), click)
    },
  )

  it('meets the attributes of the script tag', async (world) => {
    const tag = `<script src="${world.bed.url}/store.js" data-parameter="via" data-days="3" data-consent="off" async></script>`
    world.store.reopen({ scriptTag: tag.repeat(2), marketingAllowed: false })
    const context = await world.browser.newContext({ ignoreHTTPSErrors: true })
    try {
      const visitor = new Visitor(world, context)
      const page = await visitor.tab()
      const click = await visitor.follow(page, world.links.sana)
      await page.goto(`${HOME}?aff_ref=x&via=${click}`)
      await page.waitForSelector(`input[name="properties[_via]"][value="${click}"]`, { state: 'attached' })
      await visitor.quiet()
      assert.equal(
        [...world.store.carts.values()].map(({ attributes }) => attributes),
        [{ via: click }],
      )
      assert.is(world.store.countOf('POST /cart/update.js'), 1, 'the tag twice in the theme is the tag once')
      await visitor.passDays(2)
      await visitor.open(page)
      assert.is(await page.evaluate('affiliateReference()'), click)
      await visitor.passDays(2)
      await visitor.open(page)
      assert.is(await page.evaluate('affiliateReference()'), null)
    } finally {
      await context.close()
    }
  })

  scenario(
    'has localStorage blocked: the cookie carries on',
    { buyNow: false },
    async (visitor, { links }) => {
      await visitor.context.addInitScript(
        'Object.defineProperty(window, "localStorage", { get() { throw new DOMException("blocked", "SecurityError") } })',
      )
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      await visitor.remembered(click)
      await visitor.passDays(5)
      visitor.store.carts.clear()
      await page.goto(HOME)
      await visitor.carried(click)
      await visitor.add(page)
      await visitor.checkOut(page)
      assert.equal(await visitor.outcomes(), [`accepted by note_attributes: ${click}`])
    },
  )

  scenario(
    'has cookies and storage blocked: the page with the reference still sells',
    { setsCookies: false },
    async (visitor, { links }) => {
      await visitor.context.addInitScript(`
      const blocked = { get() { throw new DOMException("blocked", "SecurityError") }, set() { throw new DOMException("blocked", "SecurityError") } }
      Object.defineProperty(window, "localStorage", blocked)
      Object.defineProperty(Document.prototype, "cookie", blocked)`)
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.buyNow(page)
      await visitor.open(page)
      await visitor.buyNow(page)
      assert.equal(await visitor.outcomes(), [`accepted by line_item: ${click}`, UNKNOWN])
    },
  )

  for (const cartUpdates of ['refused', 'unanswered'] as const) {
    scenario(
      `shops where /cart/update.js is ${cartUpdates}: the form still carries the reference`,
      { cartUpdates },
      async (visitor, { links, store }) => {
        const page = await visitor.tab()
        const click = await visitor.follow(page, links.sana)
        await page.waitForSelector('input[name="properties[_aff_ref]"]', { state: 'attached' })
        await visitor.add(page)
        await visitor.checkOut(page)
        store.settings.buyNow = false
        await page.goto(HOME)
        await visitor.add(page)
        await visitor.checkOut(page)
        assert.equal(await visitor.outcomes(), [`accepted by line_item: ${click}`, UNKNOWN])
        assert.ok(store.countOf('POST /cart/update.js') <= 6)
      },
    )
  }

  scenario(
    'meets a script tag with a wrong origin: the first page is the fallback',
    {},
    async (visitor, { bed, links, store }) => {
      store.settings.scriptTag = '<script src="https://affiliate.invalid/store.js" async></script>'
      const page = await visitor.tab()
      await visitor.follow(page, links.sana)
      await visitor.add(page)
      await visitor.checkOut(page)
      store.reopen({
        scriptTag: `<script src="${bed.url}/stores.js" async></script>`,
        tellsLandingSite: true,
      })
      const click = await visitor.follow(page, links.sana)
      await visitor.add(page)
      await visitor.checkOut(page)
      assert.equal(await visitor.outcomes(), [`accepted by landing_site: ${click}`])
    },
  )

  scenario(
    'returns while the service is down: the browser has the script',
    { buyNow: false },
    async (visitor, { bed, links, store }) => {
      const relay = createServer(async (_request, response) => {
        const answer = await fetch(`${bed.url}/store.js`, { headers: { 'accept-encoding': 'identity' } })
        response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
      }).listen(0, '127.0.0.1')
      await new Promise((resolve) => relay.once('listening', resolve))
      const { port } = relay.address() as AddressInfo
      store.settings.scriptTag = `<script src="http://127.0.0.1:${port}/store.js" async></script>`
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await visitor.carried(click)
      await visitor.remembered(click)
      relay.closeAllConnections()
      await new Promise((resolve) => relay.close(resolve))
      store.carts.clear()
      await page.goto(HOME)
      await visitor.carried(click)
      // Without a stored copy there is no script, and the store works as ever.
      store.settings.scriptTag = `<script src="http://127.0.0.1:${port}/store.js?new" async></script>`
      await page.goto(HOME)
      await visitor.add(page)
      await visitor.checkOut(page)
      assert.equal(await visitor.outcomes(), [`accepted by note_attributes: ${click}`])
    },
  )

  scenario('opens an address with something else in the reference', {}, async (visitor, { store }) => {
    const page = await visitor.tab()
    for (const text of ['%3Cscript%3E', '1', '019c3f5e-8a40-4cc2-9d6e-0f8a3c1b2d4e', 'x'.repeat(3000), '']) {
      await page.goto(`${HOME}?aff_ref=${text}`)
      assert.is(await page.evaluate('affiliateReference()'), null)
    }
    await page.evaluate('localStorage.aff_ref = JSON.stringify({ ref: "<img>", at: Date.now() })')
    await visitor.open(page)
    assert.is(await page.evaluate('affiliateReference()'), null)
    assert.is(store.countOf('POST /cart/update.js'), 0)
    assert.is(await page.locator('input[name^=properties]').count(), 0)
  })

  scenario(
    'takes a cart permalink that a headless store makes with affiliateReference()',
    {},
    async (visitor, { links }) => {
      const page = await visitor.tab()
      const click = await visitor.follow(page, links.sana)
      await page.waitForFunction('window.affiliateReference')
      await page.evaluate('location = "/cart/45000000000102:1?attributes[aff_ref]=" + affiliateReference()')
      await page.waitForURL('**/thanks/*')
      assert.equal(await visitor.outcomes(), [`accepted by note_attributes: ${click}`])
    },
  )
}

function isThere(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

if (isThere(CHROMIUM)) {
  scenarios()
} else {
  it.skip('there is no Chromium at /usr/bin/chromium to visit the store with', () => {})
}

it.run()
