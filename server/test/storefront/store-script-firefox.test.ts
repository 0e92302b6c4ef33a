// proof only
// database: none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isThere } from '../testkit/browsers.ts'
import { Firefox, type FirefoxTab } from './firefox.ts'
import { HOME, HOST, type Market, openMarket } from './market.ts'

const FIREFOX = process.env.FIREFOX ?? '/usr/bin/firefox-esr'
const FIELD = 'document.querySelector("input[name=\'properties[_aff_ref]\']")?.value'

interface World {
  market: Market
  firefox: Firefox
}

const it = suite<World>('a visitor in Firefox')

/** Follows an affiliate link; answers the click's id from the page that it leads to. */
async function follow(tab: FirefoxTab, { bed }: Market, slug: string): Promise<string> {
  await tab.open(`${bed.url}/go/${slug}`)
  const reference = await tab.evaluate('new URLSearchParams(location.search).get("aff_ref")')
  assert.type(reference, 'string')
  return String(reference)
}

async function click(tab: FirefoxTab, selector: string): Promise<void> {
  await tab.evaluate(`document.querySelector('${selector}').click()`)
}

async function buy(tab: FirefoxTab, selector: string): Promise<void> {
  await click(tab, selector)
  await tab.shows('location.pathname.startsWith("/thanks/")', true)
}

function scenarios(): void {
  it.before(async (world) => {
    world.market = await openMarket()
    world.firefox = await Firefox.start(FIREFOX, HOST, world.market.port)
  })
  it.before.each(({ market }) => market.store.reopen())
  it.after(async ({ market, firefox }) => {
    await firefox?.close()
    await market?.close()
  })

  it('buys from the cart, then from the next; restores replaced attributes', async ({ market, firefox }) => {
    const tab = await firefox.tab(await firefox.profile())
    const reference = await follow(tab, market, market.links.sana)
    await market.carried(reference)
    await tab.shows('JSON.parse(localStorage.aff_ref ?? "{}").ref', reference)
    assert.ok(String(await tab.evaluate('document.cookie')).includes(reference))
    await click(tab, '[name=add]')
    await tab.shows('document.querySelector("output").textContent', 'added ')
    await tab.evaluate('Shopify.actions.updateCart({ attributes: [] }).then(() => true)')
    await market.carried(reference)
    await buy(tab, 'a')
    await tab.open(HOME)
    await market.carried(reference)
    await click(tab, '#empty')
    await tab.shows('document.querySelector("output").textContent', 'cleared ')
    await market.carried(reference)
    await click(tab, '[name=add]')
    await tab.shows('document.querySelector("output").textContent', 'cleared added ')
    await buy(tab, 'a')
    assert.equal(await market.outcomes(), Array(2).fill(`accepted by note_attributes: ${reference}`))
  })

  it('follows two links in two tabs, then buys now in the earlier', async ({ market, firefox }) => {
    const profile = await firefox.profile()
    const [first, second] = [await firefox.tab(profile), await firefox.tab(profile)]
    const earlier = await follow(first, market, market.links.sana)
    await first.shows(FIELD, earlier)
    const later = await follow(second, market, market.links.bilal)
    await first.shows(FIELD, later)
    await first.evaluate('document.querySelector("#variant").dispatchEvent(new Event("change"))')
    await first.shows(FIELD, later)
    // An old address is not a new click.
    await first.open(String(await first.evaluate('location.href')))
    await first.shows('affiliateReference()', later)
    await buy(first, '.shopify-payment-button button')
    assert.equal(await market.outcomes(), [`accepted by line_item: ${later}`])
  })

  it('refuses consent: nothing is kept', async ({ market, firefox }) => {
    market.store.settings.marketingAllowed = false
    const tab = await firefox.tab(await firefox.profile())
    const reference = await follow(tab, market, market.links.sana)
    await market.carried(reference)
    await market.quiet()
    assert.is(await tab.evaluate('localStorage.length'), 0)
    assert.is(String(await tab.evaluate('document.cookie')).includes(reference), false)
    await buy(tab, '.shopify-payment-button button')
    const again = await follow(tab, market, market.links.sana)
    await market.carried(again)
    await click(tab, '[name=add]')
    await tab.shows('document.querySelector("output").textContent', 'added ')
    await buy(tab, 'a')
    await tab.open(HOME)
    assert.is(await tab.evaluate('affiliateReference()'), null)
    await buy(tab, '.shopify-payment-button button')
    assert.equal(await market.outcomes(), [
      `accepted by line_item: ${reference}`,
      `accepted by note_attributes: ${again}`,
      'rejected: no_tracking_reference',
    ])
  })
}

if (isThere(FIREFOX)) {
  scenarios()
} else {
  it.skip('there is no Firefox at /usr/bin/firefox-esr to visit the store with', () => {})
}

it.run()
