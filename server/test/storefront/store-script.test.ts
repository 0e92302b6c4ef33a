// proof only
// database: none
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { browserSuite } from '../testkit/browsers.ts'
import { eventually, GIVE_UP_MS } from '../testkit/eventually.ts'
import { pluck } from '../testkit/pluck.ts'
import { DAY } from '../testkit/testbed.ts'
import { HOME, HOST, type Market, openMarket } from './market.ts'
import type { StoreSettings } from './theme.ts'
import { Visitor } from './visitor.ts'

interface World {
  market: Market
  browser: Browser
}

const it = browserSuite<World>('a visitor', async (world) => {
  world.market = await openMarket()
  return { host: { name: HOST, port: world.market.port } }
})
it.after(({ market }) => market?.close())

function scenario(
  name: string,
  settings: Partial<StoreSettings>,
  work: (visitor: Visitor, market: Market) => Promise<void>,
): void {
  it(name, async ({ market, browser }) => {
    market.store.reopen(settings)
    const context = await browser.newContext({ ignoreHTTPSErrors: true })
    context.setDefaultTimeout(GIVE_UP_MS)
    try {
      const visitor = new Visitor(market, context)
      await work(visitor, market)
      assert.equal(visitor.errors, [], 'no error on the page')
    } finally {
      await context.close()
    }
  })
}

/** One that begins on the page to which Sana's link leads. */
function arrival(
  name: string,
  settings: Partial<StoreSettings>,
  work: (begun: { visitor: Visitor; market: Market; page: Page; click: string }) => Promise<void>,
): void {
  scenario(name, settings, async (visitor, market) => {
    const page = await visitor.tab()
    await work({ visitor, market, page, click: await visitor.follow(page, market.links.sana) })
  })
}

const NOTHING_KEPT = { storage: null, cookie: null, others: [] }
const UNKNOWN = 'rejected: no_tracking_reference'

scenario('buys from the cart, which carries the reference while empty', {}, async (visitor, market) => {
  const page = await visitor.tab()
  const before = Date.now()
  const click = await visitor.follow(page, market.links.sana)
  await visitor.carriedAndKept(click)
  assert.is([...market.store.carts.values()][0]?.lines.length, 0)
  const { storage, cookie, others } = await visitor.kept(page)
  assert.equal(storage, cookie)
  const { ref, at } = storage as { ref: string; at: number }
  assert.is(ref, click)
  assert.ok(at >= before && at <= Date.now())
  assert.equal(others, [])
  assert.is(await page.evaluate('affiliateReference()'), click)
  await visitor.add(page)
  await market.quiet()
  assert.is(market.store.countOf('POST /cart/update.js'), 1)
  assert.is(market.store.countOf('GET /products/lawn'), 1, 'never reloads')
  await visitor.checkOut(page)
  assert.equal(await market.outcomes(), [`accepted by note_attributes: ${click}`])
})

arrival('buys now, past the cart', {}, async ({ visitor, market, page, click }) => {
  await visitor.buyNow(page)
  assert.equal(await market.outcomes(), [`accepted by line_item: ${click}`])
})

arrival('orders through the form of an app', { codForm: true }, async ({ market, page, click }) => {
  await page.click('#cod')
  await page.waitForSelector(`input[name=aff_ref][value="${click}"]`, { state: 'attached' })
  await page.click('#cod-order')
  await page.waitForURL('**/thanks/*')
  assert.equal(await market.outcomes(), [`accepted by note_attributes: ${click}`])
})

arrival('buys now after the theme has replaced the form', {}, async ({ visitor, market, page, click }) => {
  await page.waitForSelector('input[name="properties[_aff_ref]"]', { state: 'attached' })
  await page.selectOption('#variant', 'Medium')
  // Not by a click, which fills forms too: a wallet's button is in a frame of its own.
  await page.waitForSelector(`input[name="properties[_aff_ref]"][value="${click}"]`, { state: 'attached' })
  await page.selectOption('#variant', 'Small')
  await visitor.buyNow(page)
  assert.equal(await market.outcomes(), [`accepted by line_item: ${click}`])
})

arrival('gets no hidden field without buy-now', { buyNow: false }, async ({ market, page, click }) => {
  await market.carried(click)
  assert.is(await page.locator('input[name^=properties]').count(), 0)
})

arrival('gets a new cart in the same page', { buyNow: false }, async ({ visitor, market, page, click }) => {
  await visitor.carriedAndKept(click)
  const [first] = market.store.carts.keys()
  await page.click('#empty')
  await eventually(
    async () => [...market.store.carts.keys()],
    (tokens) => tokens.length > 0 && tokens[0] !== first,
  )
  await market.carried(click)
  // Another tab checks out; this one is still open and adds.
  const other = await visitor.tab()
  await other.goto(HOME)
  await visitor.buyFromCart(other)
  await visitor.add(page)
  await market.carried(click)
  await visitor.checkOut(page)
  assert.equal(await market.outcomes(), Array(2).fill(`accepted by note_attributes: ${click}`))
})

arrival('meets a script that replaces all', { buyNow: false }, async ({ visitor, market, page, click }) => {
  await market.carried(click)
  await page.evaluate('Shopify.actions.updateCart({ attributes: [{ key: "delivery", value: "Friday" }] })')
  await market.carried(click)
  const [cart] = market.store.carts.values()
  assert.is(cart?.attributes.delivery, 'Friday', 'and what the other script wrote stays')
  // A rival that undoes every write.
  await page.evaluate(`
    new PerformanceObserver((list) => {
      if (list.getEntries().some(({ name }) => name.endsWith('/cart/update.js')))
        Shopify.actions.updateCart({ attributes: [] })
    }).observe({ entryTypes: ['resource'] })
    Shopify.actions.updateCart({ attributes: [] })`)
  await eventually(
    async () => market.store.countOf('POST /cart/update.js'),
    (count) => count === 10,
  )
  await market.quiet()
  assert.is(market.store.countOf('POST /cart/update.js'), 10, 'gives in')
  assert.is(market.store.countOf('GET /products/lawn'), 1)
  await visitor.buyFromCart(page)
  assert.equal(await market.outcomes(), [UNKNOWN])
})

arrival('comes back to a page kept in memory', { buyNow: false }, async ({ market, page, click }) => {
  await market.carried(click)
  market.store.carts.clear()
  await page.evaluate('dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))')
  await market.carried(click)
})

arrival('returns after 20 days by the plain address', {}, async ({ visitor, market, page, click }) => {
  await visitor.carriedAndKept(click)
  await visitor.passDays(20)
  await page.goto(HOME)
  await market.carried(click)
  await visitor.buyFromCart(page)
  await visitor.returnAndBuyNow(page)
  assert.equal(await market.outcomes(), [
    `accepted by note_attributes: ${click}`,
    `accepted by line_item: ${click}`,
  ])
})

scenario('returns after 31 days: nothing is claimed', {}, async (visitor, market) => {
  const page = await visitor.tab()
  await visitor.remembered(await visitor.follow(page, market.links.sana))
  await market.quiet()
  await visitor.passDays(31)
  await visitor.open(page)
  assert.is(await page.evaluate('affiliateReference()'), null)
  await visitor.buyFromCart(page)
  await visitor.returnAndBuyNow(page)
  assert.equal(await market.outcomes(), [UNKNOWN, UNKNOWN])
  assert.is(market.store.countOf('POST /cart/update.js'), 1)
})

arrival('follows another link in another tab', {}, async ({ visitor, market, page, click }) => {
  const field = (value: string) =>
    page.waitForSelector(`input[name="properties[_aff_ref]"][value="${value}"]`, { state: 'attached' })
  await field(click)
  const later = await visitor.follow(await visitor.tab(), market.links.bilal)
  await field(later)
  await page.selectOption('#variant', 'Medium')
  await field(later)
  // An old address is not a new click.
  await page.reload()
  await page.waitForFunction(`affiliateReference() === '${later}'`)
  await visitor.buyNow(page)
  assert.equal(await market.outcomes(), [`accepted by line_item: ${later}`])
})

arrival('refuses consent', { marketingAllowed: false }, async ({ visitor, market, page, click }) => {
  await market.carried(click)
  await market.quiet()
  assert.equal(await visitor.kept(page), NOTHING_KEPT)
  await visitor.buyNow(page)
  const again = await visitor.follow(page, market.links.sana)
  await market.carried(again)
  await visitor.buyFromCart(page)
  await visitor.open(page)
  assert.is(await page.evaluate('affiliateReference()'), null)
  await visitor.buyNow(page)
  assert.equal(await market.outcomes(), [
    `accepted by line_item: ${click}`,
    `accepted by note_attributes: ${again}`,
    UNKNOWN,
  ])
})

arrival('consents and withdraws', { marketingAllowed: false }, async ({ visitor, market, page, click }) => {
  await market.carried(click)
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
  await market.carried(click)
  await visitor.buyFromCart(page)
  await visitor.open(page)
  await answer(false)
  assert.equal(await visitor.kept(page), NOTHING_KEPT)
  assert.is(await page.locator('input[name^=properties]').count(), 0)
  market.store.carts.clear()
  await visitor.returnAndBuyNow(page)
  assert.equal(await market.outcomes(), [`accepted by note_attributes: ${click}`, UNKNOWN])
})

scenario('has withdrawn consent elsewhere: the next page forgets', {}, async (visitor, market) => {
  const page = await visitor.tab()
  await visitor.remembered(await visitor.follow(page, market.links.sana))
  await market.quiet()
  market.store.reopen({ marketingAllowed: false })
  await page.goto(HOME)
  await page.waitForFunction('!localStorage.aff_ref && !document.cookie.includes("aff_ref")')
  await visitor.buyNow(page)
  assert.equal(await market.outcomes(), [UNKNOWN])
  assert.is(market.store.countOf('POST /cart/update.js'), 0)
})

arrival(
  'browses a store without the consent API',
  { hasConsentApi: false, buyNow: false },
  async ({ visitor, page, click }) => {
    await visitor.carriedAndKept(click)
    await visitor.open(page)
    assert.is(await page.evaluate('affiliateReference()'), click)
  },
)

scenario('meets the attributes of the script tag', { marketingAllowed: false }, async (visitor, market) => {
  const tag = `<script src="${market.bed.url}/store.js" data-parameter="via" data-days="3" data-consent="off" async></script>`
  market.store.settings.scriptTag = tag.repeat(2)
  const page = await visitor.tab()
  const click = await visitor.follow(page, market.links.sana)
  await page.goto(`${HOME}?aff_ref=x&via=${click}`)
  await page.waitForSelector(`input[name="properties[_via]"][value="${click}"]`, { state: 'attached' })
  await market.quiet()
  assert.equal(pluck([...market.store.carts.values()], 'attributes'), [{ via: click }])
  assert.is(market.store.countOf('POST /cart/update.js'), 1, 'the tag twice in the theme is the tag once')
  await visitor.passDays(2)
  await visitor.open(page)
  assert.is(await page.evaluate('affiliateReference()'), click)
  await visitor.passDays(2)
  await visitor.open(page)
  assert.is(await page.evaluate('affiliateReference()'), null)
})

scenario('has localStorage blocked: the cookie carries on', { buyNow: false }, async (visitor, market) => {
  await visitor.context.addInitScript(
    'Object.defineProperty(window, "localStorage", { get() { throw new DOMException("blocked", "SecurityError") } })',
  )
  const page = await visitor.tab()
  const click = await visitor.follow(page, market.links.sana)
  await visitor.carriedAndKept(click)
  await visitor.passDays(5)
  market.store.carts.clear()
  await page.goto(HOME)
  await market.carried(click)
  await visitor.buyFromCart(page)
  assert.equal(await market.outcomes(), [`accepted by note_attributes: ${click}`])
})

scenario('has cookies and storage blocked', { setsCookies: false }, async (visitor, market) => {
  await visitor.context.addInitScript(`
  const blocked = { get() { throw new DOMException("blocked", "SecurityError") }, set() { throw new DOMException("blocked", "SecurityError") } }
  Object.defineProperty(window, "localStorage", blocked)
  Object.defineProperty(Document.prototype, "cookie", blocked)`)
  const page = await visitor.tab()
  const click = await visitor.follow(page, market.links.sana)
  await visitor.buyNow(page)
  await visitor.returnAndBuyNow(page)
  assert.equal(await market.outcomes(), [`accepted by line_item: ${click}`, UNKNOWN])
})

for (const cartUpdates of ['refused', 'unanswered'] as const) {
  arrival(`finds updates ${cartUpdates}`, { cartUpdates }, async ({ visitor, market, page, click }) => {
    await page.waitForSelector('input[name="properties[_aff_ref]"]', { state: 'attached' })
    await visitor.buyFromCart(page)
    market.store.settings.buyNow = false
    await page.goto(HOME)
    await visitor.buyFromCart(page)
    assert.equal(await market.outcomes(), [`accepted by line_item: ${click}`, UNKNOWN])
    assert.ok(market.store.countOf('POST /cart/update.js') <= 6)
  })
}

scenario('meets a script tag with a wrong origin: the first page counts', {}, async (visitor, market) => {
  market.store.settings.scriptTag = '<script src="https://affiliate.invalid/store.js" async></script>'
  const page = await visitor.tab()
  await visitor.follow(page, market.links.sana)
  await visitor.buyFromCart(page)
  assert.equal(await market.outcomes(), [UNKNOWN])
  market.store.reopen({
    scriptTag: `<script src="${market.bed.url}/stores.js" async></script>`,
    tellsLandingSite: true,
  })
  const click = await visitor.follow(page, market.links.sana)
  await visitor.buyFromCart(page)
  assert.equal(await market.outcomes(), [`accepted by landing_site: ${click}`])
  // Firefox reports a script that is refused.
  visitor.errors.length = 0
})

scenario('returns while the service is down', { buyNow: false }, async (visitor, market) => {
  const relay = createServer(async (_request, response) => {
    const answer = await fetch(`${market.bed.url}/store.js`, {
      headers: { 'accept-encoding': 'identity' },
    })
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => relay.once('listening', resolve))
  const { port } = relay.address() as AddressInfo
  market.store.settings.scriptTag = `<script src="http://127.0.0.1:${port}/store.js" async></script>`
  const page = await visitor.tab()
  const click = await visitor.follow(page, market.links.sana)
  await visitor.carriedAndKept(click)
  relay.closeAllConnections()
  await new Promise((resolve) => relay.close(resolve))
  market.store.carts.clear()
  await page.goto(HOME)
  await market.carried(click)
  // Without a stored copy there is no script, and the store works as ever.
  market.store.settings.scriptTag = `<script src="http://127.0.0.1:${port}/store.js?new" async></script>`
  await page.goto(HOME)
  await visitor.buyFromCart(page)
  assert.equal(await market.outcomes(), [`accepted by note_attributes: ${click}`])
})

scenario('opens a forged reference: the next click wins', {}, async (visitor, market) => {
  const idAt = (at: number) => {
    const time = at.toString(16).padStart(12, '0')
    return `${time.slice(0, 8)}-${time.slice(8)}-7fff-bfff-ffffffffffff`
  }
  const page = await visitor.tab()
  const implausible = [
    'ffffffff-ffff-7fff-bfff-ffffffffffff',
    idAt(Date.now() + 3 * DAY),
    idAt(Date.now() - 40 * DAY),
  ]
  for (const forged of implausible) {
    await visitor.open(page, `?aff_ref=${forged}`)
    assert.is(await page.evaluate('affiliateReference()'), null, forged)
  }
  assert.is(market.store.countOf('POST /cart/update.js'), 0)
  // Within the tolerance for wrong clocks it is kept, but only until the next visit.
  const ahead = idAt(Date.now() + 3_600_000)
  await visitor.open(page, `?aff_ref=${ahead}`)
  await visitor.remembered(ahead)
  const honest = await visitor.follow(page, market.links.sana)
  await visitor.carriedAndKept(honest)
  await visitor.open(page, `?aff_ref=${ahead}`)
  // Consent is asked for while the page loads; an old address is not a new visit.
  await page.waitForFunction(`affiliateReference() === "${honest}"`)
  await visitor.buyFromCart(page)
  assert.equal(await market.outcomes(), [`accepted by note_attributes: ${honest}`])
})

scenario('opens an address with something else in the reference', {}, async (visitor, market) => {
  const page = await visitor.tab()
  for (const text of ['%3Cscript%3E', '1', '019c3f5e-8a40-4cc2-9d6e-0f8a3c1b2d4e', 'x'.repeat(3000), '']) {
    await page.goto(`${HOME}?aff_ref=${text}`)
    assert.is(await page.evaluate('affiliateReference()'), null)
  }
  await page.evaluate('localStorage.aff_ref = JSON.stringify({ ref: "<img>", at: Date.now() })')
  await visitor.open(page)
  assert.is(await page.evaluate('affiliateReference()'), null)
  assert.is(market.store.countOf('POST /cart/update.js'), 0)
  assert.is(await page.locator('input[name^=properties]').count(), 0)
})

arrival('takes a cart permalink made with affiliateReference()', {}, async ({ market, page, click }) => {
  await page.waitForFunction('window.affiliateReference')
  await page.evaluate('location = "/cart/45000000000102:1?attributes[aff_ref]=" + affiliateReference()')
  await page.waitForURL('**/thanks/*')
  assert.equal(await market.outcomes(), [`accepted by note_attributes: ${click}`])
})

it.run()
